{#
    Positions as bronze has them, from what a variable or a property names: a whole number is
    PostgreSQL's LSN.
#}
{% macro _positions(named) -%}
    {%- set positions = [] -%}
    {%- for text in named | map('string') -%}
        {%- set is_lsn = modules.re.fullmatch('0|[1-9][0-9]*', text) -%}
        {%- do positions.append('%016x' | format(text | int) if is_lsn else text) -%}
    {%- endfor -%}
    {{ return(positions) }}
{%- endmacro %}
