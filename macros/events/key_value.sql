{#
    An event's key: its column's value or, of several columns, their values joined by `-` (`\-`
    where a value has one), null where one is missing. `has_row` as of _key_text.
#}
{% macro key_value(table, has_row=true) -%}
{%- if not table['key_columns'] -%}
{{ cdc_lakehouse._typed(cdc_lakehouse._key_text(table, table['key'], has_row), table['columns'][table['key']]) }}
{%- else -%}
concat(
    {%- for column in table['key_columns'] %}
    {%- set text = cdc_lakehouse._key_text(table, column, has_row) %}
    replace(replace(
        cast({{ cdc_lakehouse._typed(text, table['columns'][column]) }} as string), '\\', '\\\\'
    ), '-', '\\-')
    {{- ",\n    '-'," if not loop.last }}
    {%- endfor %}
)
{%- endif -%}
{%- endmacro %}
