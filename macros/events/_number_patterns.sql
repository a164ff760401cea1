{#
    Java's expressions, with the backslashes that SQL takes, for what Spark's JSON takes through a
    double: `short_numbers` is of a text that certainly has no number that a double would round, and
    is quick; `up_to_long_number` is, behind the match before, all up to such a number ($1) and the
    number ($2). ingest/events.py explains them.
#}
{% macro _number_patterns() -%}
    {%- set long_number = '-?(?:(?=[0-9.]{17}|[0-9]{16}[eE])[0-9]+[.eE]|[0-9.]+[eE][+-]?[0-9]{3})' -%}
    {%- set string = '"[^"\\\\\\\\]*+(?:\\\\\\\\.[^"\\\\\\\\]*+)*+"' -%}
    {%- set number = '[0-9-][0-9.eE+-]*+' -%}
    {%- set short_numbers = '^(?>[^0-9]*(?>[0-9]++(?![.eE])'
        ~ '|[0-9][0-9.]{0,15}+(?![0-9.]|(?<=[0-9]{16})[eE]|[eE][+-]?[0-9]{3})'
        ~ '|(?<![\\\\s:,\\\\[-])[0-9][0-9.]*+))*+[^0-9]*$' -%}
    {{ return({
        'short_numbers': short_numbers | replace('0-9', '0123456789'),
        'up_to_long_number': '\\\\G((?:[^"0-9-]++|%s|(?!%s)%s)*+)(%s)' % (string, long_number, number, number),
    }) }}
{%- endmacro %}
