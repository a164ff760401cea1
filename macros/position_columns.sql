{#
    The columns that say which event a row comes from. Every silver table ends with them,
    and with `carried_columns`.
#}
{% macro position_columns() -%}
    {{ return([
        'op', 'is_deleted', 'source_epoch', 'source_lsn', 'kafka_offset', 'changed_at',
        'ingested_at', 'ingest_batch'
    ]) }}
{%- endmacro %}
