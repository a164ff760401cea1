{# The value of a key's column in an event; `has_row` as of _key_text. #}
{% macro _key_part(table, column, has_row=true) -%}
{{ cdc_lakehouse._typed(
    cdc_lakehouse._key_text(table, column, has_row),
    table['columns'][column],
    cdc_lakehouse._has_number(table, column, has_row)
) }}
{%- endmacro %}
