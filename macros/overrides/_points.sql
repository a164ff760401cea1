{# Points, pairs of epoch and position, from how a setting or a property names them. #}
{% macro _points(named) -%}
    {%- set points = [] -%}
    {%- for text in named | map('string') -%}
        {%- set epoch, at, position = text.rpartition('@') -%}
        {%- set is_lsn = modules.re.fullmatch('0|[1-9][0-9]*', position) -%}
        {%- do points.append((epoch | int if at else none, '%016x' | format(position | int) if is_lsn else position)) -%}
    {%- endfor -%}
    {{ return(points) }}
{%- endmacro %}
