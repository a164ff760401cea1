{#
    A snapshot read for each key that a complete snapshot lacked, with the row marked as
    deleted: its delete was never sent. It stands where the snapshot's first read of its
    partition does or, without one, at the snapshot's position.

    A key with events of lower positions, first delivered behind that read or, without one,
    committed after it, is not missing: their transaction was open when the snapshot was taken. A
    read without a position that is behind it says nothing of what was before. Rows of an earlier epoch of the source are, unless they came again. A snapshot without any
    read, of a table that was empty, is known by its marker alone (see run_bounds).
#}
{% macro _missing_rows(events, table, point, bound, is_kept) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set epoch, position = point -%}
{%- set is_behind -%}
coalesce(
            history.kafka_offset > part.first_offset,
            history.ingest_batch > snapshot.first_batch or history.__cdc_committed_at > snapshot.changed_at
        )
{%- endset -%}
{%- set passed = 'source_epoch, source_position, source_lsn, source_ts, ingested_at, ingest_batch' -%}
{%- set reads -%}
(
        select topic, topic_generation, topic_partition, kafka_offset, {{ passed }}
        from {{ cdc_lakehouse.bronze_events(table['bronze_relation']) }}
        where op = 'r' and {{ cdc_lakehouse.at_points([point]) | indent(8) }} and {{ bound }}
        {%- for marker in cdc_lakehouse.run_bounds().get('complete_snapshots', {}).get('markers', [])
            if marker['table'] == table['bronze'] and marker['point'] == point %}
        union all
        select '{{ marker['topic'] }}', null, null, null, {{ passed }}
        from {{ cdc_lakehouse.bronze_events(marker['relation']) }}
        where event_id = '{{ marker['id'] }}'
        {%- endfor %}
    ) as reads
{%- endset -%}
{%- set existing -%}
(
        select
            {{ key }}, source_epoch, source_position, topic, topic_generation, topic_partition, kafka_offset,
            op, ingest_batch, changed_at
        from {{ events }}
        union all
        select
            {{ key }}, source_epoch, source_position, topic, topic_generation, topic_partition, kafka_offset,
            op, ingest_batch, changed_at
        from ({{ cdc_lakehouse._stored_points(events, table) | indent(8) }})
        where __cdc_is_live
    )
{%- endset -%}
select /*+ broadcast(snapshot), broadcast(part) */
    {{ cdc_lakehouse._event_values(table, 'history.' ~ key, {
        'event_id': "concat('snapshot-" ~ point | join('@') ~ "-', history." ~ key ~ ')',
        'topic_partition': 'max(if(part.first_offset is null, null, part.topic_partition))',
        'kafka_offset': 'max(part.first_offset)',
        'topic_generation': 'max(coalesce(snapshot.topic_generation, history.topic_generation))',
        'op': "'r'",
    }, 'max(snapshot.%s)') }}
from (
    select
        {{ key }}, source_epoch, source_position, topic, topic_generation, topic_partition,
        op = 'r' as __cdc_is_read,
        min(kafka_offset) as kafka_offset, min(ingest_batch) as ingest_batch, min(changed_at) as __cdc_committed_at
    from {{ events if not is_kept else existing | indent(4) }}
    where {{ key }} is not null and {{ bound }}
    group by all
) as history
inner join (
    select
        source_epoch, topic, source_position,
        max(source_lsn) as source_lsn, max(topic_generation) as topic_generation,
        max(source_ts) as changed_at, max(ingested_at) as ingested_at,
        max(ingest_batch) as ingest_batch, min(ingest_batch) as first_batch
        {%- if is_kept %},
        {#- a stored row of which no offset is known is of the only topic that there is #}
        max((
            select collect_set(topic) from {{ cdc_lakehouse.bronze_events(table['bronze_relation']) }} where {{ bound }}
        )) as topics
        {%- endif %}
    from {{ reads }}
    group by all
) as snapshot
    on
        history.source_epoch <= snapshot.source_epoch
        and {{ "if(history.topic is null, size(array_except(snapshot.topics, array(snapshot.topic))) = 0, history.topic = snapshot.topic)"
            if is_kept else 'history.topic <=> snapshot.topic' }}
left join (
    select source_epoch, topic, topic_generation, topic_partition, min(kafka_offset) as first_offset
    from {{ reads }}
    group by all
) as part
    on
        snapshot.source_epoch = part.source_epoch
        and history.topic <=> part.topic
        and history.topic_generation = part.topic_generation
        and history.topic_partition = part.topic_partition
group by history.{{ key }}, snapshot.source_epoch
having
    count_if(
        history.source_epoch < snapshot.source_epoch
        or history.source_position < '{{ position }}'
        or (
            history.source_position is null
            and history.topic_generation <= coalesce(snapshot.topic_generation, history.topic_generation)
            and not {{ is_behind }}
        )
    ) > 0
    and count_if(
        history.source_epoch = snapshot.source_epoch
        and history.__cdc_is_read
        and history.source_position = '{{ position }}'
    ) = 0
    and count_if(
        history.source_epoch = snapshot.source_epoch
        and history.topic_generation = coalesce(snapshot.topic_generation, history.topic_generation)
        and history.source_position < '{{ position }}'
        and {{ is_behind }}
    ) = 0
{%- endmacro %}
