{#
    What Debezium sends for a value that the write-ahead log lacks (TOAST), an array of texts: the
    placeholder as it is; in base64, of a bytea; as the one element of an array of texts, bytea or
    uuid, of which it is the UUID of version 3 without a namespace; as an entry of an hstore; and
    its bytes as the elements of an array of integers or dates. Java's bytes have a sign.
#}
{% macro _unavailable_texts() -%}
    {%- set placeholder = var('cdc_lakehouse_unavailable_value', '__debezium_unavailable_value') -%}
    {%- set text = "'" ~ placeholder | replace('\\', '\\\\') | replace("'", "\\'") ~ "'" -%}
    {%- set base64 = 'base64(cast(' ~ text ~ ' as binary))' -%}
    {%- set bytes = [] -%}
    {%- for byte in placeholder.encode() -%}
        {%- do bytes.append((byte + 128) % 256 - 128) -%}
    {%- endfor -%}
    {%- set digits = local_md5(placeholder) -%}
    {%- set uuid = [
        digits[:8], digits[8:12], '3' ~ digits[13:16],
        '89ab'[digits[16] | int(base=16) % 4] ~ digits[17:20], digits[20:]
    ] | join('-') -%}
array(
    {{ text }}, {{ base64 }}, to_json(array({{ text }})), to_json(array({{ base64 }})),
    '["{{ uuid }}"]', to_json(map({{ text }}, {{ text }})), '[{{ bytes | join(',') }}]'
)
{%- endmacro %}
