{#
    The text of a key's column in an event. A delete in the envelope may bring its key in
    Kafka's key only.
#}
{% macro key_text(table, column) -%}
{%- set name = table['source_names'][column] -%}
coalesce(
    row_image.`{{ column }}`,
    get_json_object(key, "$['{{ name }}']"),
    get_json_object(key, "$.payload['{{ name }}']")
)
{%- endmacro %}
