{#
    A snapshot read, with the row marked as deleted, for each key that has a row in this table and
    no event in bronze any more, and that the complete snapshots at `points` lacked.
    _missing_rows has those of which bronze has events.
#}
{% macro _missing_versions(events, table, points) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set bound = cdc_lakehouse.arrived_until_this_run(table['bronze']) -%}
{%- set values = {
    'event_id': "concat('snapshot-', snapshot.source_position, '-', target." ~ key ~ ')',
    'op': "'r'",
} -%}
select /*+ broadcast(snapshot) */
    {{ cdc_lakehouse._event_values(table, 'target.' ~ key, values, 'snapshot.%s') }}
from {{ this }} as target
inner join (
    select
        topic, source_epoch, source_position,
        max(source_lsn) as source_lsn, max(topic_generation) as topic_generation,
        max(source_ts) as changed_at, max(ingested_at) as ingested_at, max(ingest_batch) as ingest_batch
    from {{ cdc_lakehouse.bronze_events(table['bronze_relation']) }}
    where op = 'r' and {{ cdc_lakehouse.at_points(points) | indent(4) }} and {{ bound }}
    group by topic, source_epoch, source_position
) as snapshot
    on
        named_struct('epoch', target.from_epoch, 'position', target.from_position)
        < named_struct('epoch', snapshot.source_epoch, 'position', snapshot.source_position)
        and coalesce(
            regexp_replace(target.last_event.place.topic_partition, '/[^/]*$', ''), snapshot.topic
        ) = snapshot.topic
left anti join (select {{ key }} from {{ events }} where {{ bound }}) as known
    on target.{{ key }} = known.{{ key }}
where target.is_current
{%- endmacro %}
