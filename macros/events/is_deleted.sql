{#
    True when Debezium marked the row as deleted.

    The unwrap transform writes `__deleted` as the strings 'true' and 'false'; the
    envelope has only the operation. Null means no.
#}
{% macro is_deleted(op, deleted) -%}
    coalesce({{ op }} = 'd' or lower({{ deleted }}) = 'true', false)
{%- endmacro %}
