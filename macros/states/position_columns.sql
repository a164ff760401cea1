{# The columns that follow a silver row's own: which event the row comes from. #}
{% macro position_columns() -%}
    {{ return([
        'op', 'is_deleted', 'source_epoch', 'source_position', 'source_lsn', 'kafka_offset',
        'changed_at', 'ingested_at', 'ingest_batch', 'untyped_columns'
    ]) }}
{%- endmacro %}
