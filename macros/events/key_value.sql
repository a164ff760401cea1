{# An event's key: its column's value or, of several columns, their values joined by `-`; null where one is missing. #}
{% macro key_value(table, has_row=true, column=none, type=none) -%}
{%- if not column and table['key_columns'] -%}
concat(
    {%- for part in table['key_columns'] %}
    replace(replace(cast({{ cdc_lakehouse.key_value(table, has_row, part) }} as string), '\\', '\\\\'), '-', '\\-')
    {{- ",\n    '-'," if not loop.last }}
    {%- endfor %}
)
{%- else -%}
{%- set column = column or table['key'] -%}
{%- set key = 'exact_key' if has_row else cdc_lakehouse._exact_numbers('key') -%}
{%- set text -%}
coalesce(
    {%- if has_row %}
    if(
        is_deleted and startswith(key, '{') and row_image.`{{ column }}` rlike '^([0.-]*|1970-01-01.*|AA==|false)$',
        null, row_image.`{{ column }}`
    ),
    {%- endif %}
    {%- for name in table['source_names'][column] %}
    get_json_object({{ key }}, "$['{{ name }}']"), get_json_object({{ key }}, "$.payload['{{ name }}']")
    {{- ',' if not loop.last }}
    {%- endfor %}
)
{%- endset -%}
{{ cdc_lakehouse._typed(text, type or table['columns'][column], table['source_names'][column], has_row) }}
{%- endif -%}
{%- endmacro %}
