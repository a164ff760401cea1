{#
    What is stored of the keys of `events` (a CTE) and no event of bronze tells any more, as
    history_rows reads it: the versions whose event is gone, each as a row, and the deletes that
    are, as rows of `op` d. A version begins at the position of one of its key's events.

    Of the versions that began before all events of a key only the last is needed: it stands
    before them, also before a read whose place has no position.
#}
{% macro _dropped_versions(table) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
select
    {%- for column in table['columns'] %}
    `{{ column }}`,
    {%- endfor %}
    valid_from,
    if(part = 2, valid_to, null) as valid_to,
    if(part = 2, 'd', op) as op,
    from_epoch, from_position,
    if(part = 2, to_epoch, null) as to_epoch,
    if(part = 2, to_position, null) as to_position,
    if(version_number = base_version, version_number, 1) as version_number,
    untyped_columns, ingest_batch, inherited,
    named_struct(
        'place', named_struct(
            'source_epoch', if(part = 1, begun.epoch, ended.epoch),
            'position', case
                when part = 1 and begun > first_event then begun.position
                when part = 2 and ended > first_event then ended.position
            end,
            'read_rank', case
                when part = 1 and begun < first_event then -3
                when part = 2 and ended < first_event then -2
                else 0
            end,
            'topic_generation', cast(null as int), 'kafka_offset', cast(null as bigint),
            'changed_at', cast(null as timestamp), 'op', cast(null as string),
            'source_lsn', cast(null as bigint), 'topic_partition', cast(null as string)
        ),
        'is_deleted', part = 2,
        'unknown_columns', cast(array() as array<string>),
        'is_inheriting', false,
        'last_read', named_struct(
            'topic_generation', cast(null as int), 'topic_partition', cast(null as string),
            'kafka_offset', cast(null as bigint)
        )
    ) as last_event
from (
    select
        *,
        begun.position is not null and not array_contains(positions, begun) as is_begun,
        ended.position is not null
        and not array_contains(positions, ended)
        and not ended <=> lead(begun) over (partition by {{ key }} order by version_number) as is_ended,
        max(
            case
                when begun.position is not null and begun < first_event and op <> 'd' then version_number
            end
        ) over (partition by {{ key }}) as base_version
    from (
        select
            {{ cdc_lakehouse._stored_versions(table) | indent(8) }},
            named_struct('epoch', target.from_epoch, 'position', target.from_position) as begun,
            named_struct('epoch', target.to_epoch, 'position', target.to_position) as ended,
            known.positions,
            known.positions[0] as first_event
        from {{ this }} as target
        inner join (
            select
                {{ key }},
                sort_array(collect_set(if(
                    source_position is null, null,
                    named_struct('epoch', source_epoch, 'position', source_position)
                ))) as positions
            from events
            group by {{ key }}
        ) as known
            on target.{{ key }} = known.{{ key }}
    )
)
lateral view explode(array(1, 2)) parts as part
where
    version_number >= coalesce(base_version, 0)
    and ((part = 1 and is_begun and op <> 'd') or (part = 2 and is_ended))
{%- endmacro %}
