{# The columns of a change event that the fold uses; the last one is of _decided_events. #}
{% macro event_columns(table) -%}
    {{ return(
        ['event_id', 'op', 'is_deleted', 'source_epoch', 'source_position', 'source_lsn',
         'topic_generation', 'topic_partition', 'kafka_offset', 'changed_at', 'ingested_at',
         'ingest_batch', 'unavailable_columns', 'untyped_columns', 'fields']
        + table['columns'].keys() | list + ['position_before_read']
    ) }}
{%- endmacro %}
