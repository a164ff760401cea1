{#
    True where Debezium had no value to send: a TOASTed column that the change left alone
    is not in the WAL. The placeholder is what the connector's `unavailable.value.placeholder`
    says; a bytea's comes in base64, that of an array of texts as its one element.
#}
{% macro is_unavailable(text) -%}
    {%- set placeholder = var(
        'cdc_lakehouse_unavailable_value', '__debezium_unavailable_value'
    ) | replace('\\', '\\\\') | replace("'", "\\'") -%}
    coalesce({{ text }} in (
        '{{ placeholder }}',
        base64(cast('{{ placeholder }}' as binary)),
        '["{{ placeholder }}"]'
    ), false)
{%- endmacro %}
