{#
    The events of a bronze table, a subquery: `topic_partition` names the sequence that an
    offset belongs to. What earlier versions of the ingest wrote lacks `source_position` and
    `topic_generation`; both follow from the rest.
#}
{% macro bronze_events(bronze) -%}
(
    select
        event_id,
        topic,
        kafka_partition,
        kafka_offset,
        key,
        value,
        op,
        source_epoch,
        source_lsn,
        source_ts,
        ingested_at,
        ingest_batch,
        ingest_date,
        coalesce(source_position, lower(lpad(hex(source_lsn), 16, '0'))) as source_position,
        coalesce(topic_generation, 0) as topic_generation,
        case
            when kafka_offset is not null then concat_ws('/', topic, kafka_partition)
        end as topic_partition

    from {{ bronze }}
)
{%- endmacro %}
