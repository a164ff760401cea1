{# The columns that a relation or a subquery yields, in their order: a mapping of name to type. #}
{% macro column_types(relation) -%}
    {%- set types = {} -%}
    {%- for row in run_query('describe query select * from ' ~ relation) -%}
        {%- do types.update({row[0]: row[1]}) -%}
    {%- endfor -%}
    {{ return(types) }}
{%- endmacro %}
