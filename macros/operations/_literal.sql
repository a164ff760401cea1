{# A text as a literal of SQL. #}
{% macro _literal(text) -%}
'{{ text | replace('\\', '\\\\') | replace("'", "\\'") }}'
{%- endmacro %}
