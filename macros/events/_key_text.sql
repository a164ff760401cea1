{#
    The text of a key's column in an event. A delete in the envelope may bring it in Kafka's key
    only, which is all that there is before the row is parsed (`has_row`).
#}
{% macro _key_text(table, column, has_row=true) -%}
coalesce(
    {{ 'row_image.`' ~ column ~ '`,' if has_row }}
    {%- for name in table['source_names'][column] %}
    get_json_object(key, "$['{{ name }}']"),
    get_json_object(key, "$.payload['{{ name }}']"){{ ',' if not loop.last }}
    {%- endfor %}
)
{%- endmacro %}
