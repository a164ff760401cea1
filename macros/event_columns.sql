{# The columns of a change event that the fold uses. #}
{% macro event_columns(table) -%}
    {{ return(
        ['event_id', 'topic', 'kafka_partition', 'kafka_offset', 'op', 'source_epoch',
         'source_lsn', 'changed_at', 'ingested_at', 'ingest_batch', 'is_deleted',
         'unavailable_columns']
        + table['columns'].keys() | list
    ) }}
{%- endmacro %}
