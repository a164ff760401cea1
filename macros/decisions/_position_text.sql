{#
    A position as bronze has it, from what a variable or a property names: a whole number is
    PostgreSQL's LSN.
#}
{% macro _position_text(named) -%}
    {%- set text = named | string -%}
    {{ return('%016x' | format(text | int) if modules.re.fullmatch('0|[1-9][0-9]*', text) else text) }}
{%- endmacro %}
