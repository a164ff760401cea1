{# A JSON text with each number that Spark's JSON would round as a string instead, within `mark` (SQL). #}
{% macro _exact_numbers(text, mark="''") -%}
{%- set long_number = '-?(?:(?=[0-9.]{17}|[0-9]{16}[eE])[0-9]+[.eE]|[0-9.]+[eE][+-]?[0-9]{3})' -%}
{%- set string, number = '"[^"\\\\\\\\]*+(?:\\\\\\\\.[^"\\\\\\\\]*+)*+"', '[0-9-][0-9.eE+-]*+' -%}
{%- set short_numbers = '^(?>[^0-9]*(?>[0-9]++(?![.eE])'
    ~ '|[0-9][0-9.]{0,15}+(?![0-9.]|(?<=[0-9]{16})[eE]|[eE][+-]?[0-9]{3})'
    ~ '|(?<![\\\\s:,\\\\[-])[0-9][0-9.]*+))*+[^0-9]*$' -%}
{%- set up_to_long_number = '\\\\G((?:[^"0-9-]++|%s|(?!%s)%s)*+)(%s)' % (string, long_number, number, number) -%}
if({{ text }} rlike '{{ short_numbers | replace('0-9', '0123456789') }}', {{ text }}, regexp_replace(
    {{ text }}, '{{ up_to_long_number }}', concat('$1"', {{ mark }}, '$2', {{ mark }}, '"')
))
{%- endmacro %}
