{#
    The truncates of a bronze table at some points (see _points), one row each, `__cdc_truncate`, with
    what an event has: a subquery. `bound` says which have arrived.
#}
{% macro _truncates(table, points, bound) -%}
(
    select struct(
        source_epoch, source_position, topic, topic_generation, topic_partition,
        source_table as __cdc_source_table,
        min(kafka_offset) as kafka_offset, min(event_id) as event_id, min(source_lsn) as source_lsn,
        min(source_ts) as changed_at, min(ingested_at) as ingested_at, min(ingest_batch) as ingest_batch
    ) as __cdc_truncate
    from {{ cdc_lakehouse.bronze_events(table['bronze_relation']) | indent(4) }}
    where op = 't' and {{ cdc_lakehouse.at_points(points) | indent(4) }} and {{ bound }}
    group by source_epoch, source_position, topic, topic_generation, topic_partition, source_table
)
{%- endmacro %}
