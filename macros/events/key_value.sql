{#
    An event's key: its column's value or, of several columns, their values joined by `-` (`\-`
    where a value has one), null where one is missing. `has_row` as of _key_text.
#}
{% macro key_value(table, has_row=true) -%}
{%- if not table['key_columns'] -%}
{{ cdc_lakehouse._key_part(table, table['key'], has_row) }}
{%- else -%}
concat(
    {%- for column in table['key_columns'] %}
    replace(replace(
        cast({{ cdc_lakehouse._key_part(table, column, has_row) }} as string), '\\', '\\\\'
    ), '-', '\\-')
    {{- ",\n    '-'," if not loop.last }}
    {%- endfor %}
)
{%- endif -%}
{%- endmacro %}
