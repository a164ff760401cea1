{#
    The query itself, or, while dbt runs the model, a select from a scratch view that holds
    its rows. Steps keep the plans small: what a query uses several times is computed once.
#}
{% macro in_steps(name, query) -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- do create_scratch_view(name, query) -%}
        {{ return('select * from ' ~ name) }}
    {%- endif -%}
    {{ return(query) }}
{%- endmacro %}
