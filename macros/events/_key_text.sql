{#
    The text of a key's column in an event. A delete in the envelope may bring it in Kafka's key
    only, which is all that there is before the row is parsed (`has_row`).

    A delete brings the columns of the replica identity, and of others a value that Debezium makes
    up: a zero or an empty text is a key only where Kafka's key has it, too (docs/limits.md).
#}
{% macro _key_text(table, column, has_row=true) -%}
{%- set text = 'fold_key' if has_row else cdc_lakehouse._exact_key() -%}
coalesce(
    {%- if has_row %}
    if(
        is_deleted and startswith(key, '{')
        and row_image.`{{ column }}` rlike '^([0.-]*|1970-01-01.*|AA==|false)$',
        null, row_image.`{{ column }}`
    ),
    {%- endif %}
    {%- for name in table['source_names'][column] %}
    get_json_object({{ text }}, "$['{{ name }}']"),
    get_json_object({{ text }}, "$.payload['{{ name }}']"){{ ',' if not loop.last }}
    {%- endfor %}
)
{%- endmacro %}
