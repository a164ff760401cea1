{#
    The text of a key's column in an event. A delete in the envelope may bring its key in
    Kafka's key only.
#}
{% macro key_text(column) -%}
coalesce(
    `text_{{ column }}`,
    get_json_object(key, '$.{{ column }}'),
    get_json_object(key, '$.payload.{{ column }}')
)
{%- endmacro %}
