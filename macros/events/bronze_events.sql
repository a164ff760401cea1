{#
    A bronze table's events, a subquery. What earlier versions of the ingest wrote lacks
    `source_position` and `topic_generation`; both follow from the rest.
#}
{% macro bronze_events(bronze) -%}
(
    select
        event_id, topic, kafka_partition, kafka_offset, key, value, op, source_epoch, source_lsn,
        source_ts, source_table, ingested_at, ingest_batch, ingest_date,
        coalesce(source_position, lower(lpad(hex(source_lsn), 16, '0'))) as source_position,
        coalesce(topic_generation, 0) as topic_generation,
        if(kafka_offset is null, null, concat_ws('/', topic, kafka_partition)) as topic_partition
    from {{ bronze }}
)
{%- endmacro %}
