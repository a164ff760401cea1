{#
    True where Debezium had no value to send: a TOASTed column that the change left alone
    is not in the WAL. A bytea placeholder comes in base64, an array's as its one element.
#}
{% macro is_unavailable(text) -%}
    coalesce({{ text }} in (
        '__debezium_unavailable_value',
        'X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==',
        '["__debezium_unavailable_value"]'
    ), false)
{%- endmacro %}
