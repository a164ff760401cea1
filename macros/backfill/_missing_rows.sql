{# A snapshot read for each key of the CTE `existing` that a complete snapshot lacked, with the row marked as deleted. #}
{% macro _missing_rows(table) -%}
{%- set key, passed = '`' ~ table['key'] ~ '`', 'source_epoch, source_position, source_lsn, source_ts, ingested_at, ingest_batch' -%}
{%- set is_behind = 'coalesce(history.kafka_offset > part.first_offset, history.__cdc_committed_at > snapshot.changed_at)' -%}
reads as (
    select topic, topic_generation, {{ cdc_lakehouse.topic_partition() }} as topic_partition, kafka_offset, {{ passed }}
    from {{ table['bronze_relation'] }}
    where
        op = 'r' and source_position in ('{{ table['snapshots'] | map('last') | join("', '") }}') and {{ table['until'] }}
        and concat(source_epoch, '@', source_position) in ('{{ table['snapshots'] | map('join', '@') | join("', '") }}')
    {%- for marker in table['markers'] if marker['point'] in table['snapshots'] %}
    union all
    select '{{ marker['topic'] }}', null, null, null, {{ passed }}
    from {{ marker['relation'] }}
    where event_id = '{{ marker['id'] }}'
    {%- endfor %}
),

missing as (
    select /*+ broadcast(snapshot), broadcast(part) */
        history.{{ key }},
        concat('snapshot-', snapshot.source_epoch, '@', snapshot.source_position, '-', history.{{ key }}) as event_id,
        'r' as op, snapshot.source_epoch, snapshot.source_position, max(snapshot.source_lsn) as source_lsn,
        max(coalesce(snapshot.topic_generation, history.topic_generation)) as topic_generation,
        max(if(part.first_offset is null, null, part.topic_partition)) as topic_partition,
        max(part.first_offset) as kafka_offset, max(snapshot.changed_at) as changed_at,
        max(snapshot.ingested_at) as ingested_at, max(snapshot.ingest_batch) as ingest_batch
    from (
        select
            {{ key }}, source_epoch, source_position, topic, topic_generation, topic_partition, op = 'r' as __cdc_is_read,
            min(kafka_offset) as kafka_offset, min(changed_at) as __cdc_committed_at
        from existing
        where __cdc_is_live
        group by all
    ) as history
    inner join (
        select
            source_epoch, topic, source_position, max(source_lsn) as source_lsn, max(topic_generation) as topic_generation,
            max(source_ts) as changed_at, max(ingested_at) as ingested_at, max(ingest_batch) as ingest_batch,
            max((select collect_set(topic) from {{ table['bronze_relation'] }} where {{ table['until'] }})) as topics
        from reads
        group by all
    ) as snapshot
        on
            history.source_epoch <= snapshot.source_epoch
            and coalesce(history.topic = snapshot.topic, size(array_remove(snapshot.topics, snapshot.topic)) = 0)
    left outer join (
        select source_epoch, source_position, topic, topic_generation, topic_partition, min(kafka_offset) as first_offset
        from reads
        group by all
    ) as part
        on
            snapshot.source_epoch = part.source_epoch and snapshot.source_position = part.source_position
            and history.topic <=> part.topic and history.topic_generation = part.topic_generation
            and history.topic_partition = part.topic_partition
    group by history.{{ key }}, snapshot.source_epoch, snapshot.source_position
    having
        bool_or(
            history.source_epoch < snapshot.source_epoch or history.source_position < snapshot.source_position
            or (
                history.source_position is null
                and history.topic_generation <= coalesce(snapshot.topic_generation, history.topic_generation)
                and not {{ is_behind }}
            )
        )
        and not coalesce(bool_or(history.source_epoch = snapshot.source_epoch and (
            history.__cdc_is_read and history.source_position = snapshot.source_position
            or history.topic_generation = coalesce(snapshot.topic_generation, history.topic_generation)
            and history.source_position < snapshot.source_position and {{ is_behind }}
        )), false)
)
{%- endmacro %}
