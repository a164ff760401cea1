{#
    What is stored of the keys of `events` (a CTE) and no event of bronze tells any more, as
    history_rows reads it: the versions whose event is gone, each as a row, and the deletes that
    are, as rows of `op` d. A version begins at the position of one of its key's events.

    Of the versions that began before all events of a key only the last is needed: it stands
    before them, also before a read whose place has no position.
#}
{% macro _dropped_versions(table) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set truncates = cdc_lakehouse.decided_truncates('apply') if execute else [] -%}
select
    {%- for column in table['columns'] %}
    `{{ column }}`,
    {%- endfor %}
    valid_from,
    if(fold_part = 2, valid_to, null) as valid_to,
    if(fold_part = 2, 'd', op) as op,
    from_epoch, from_position,
    if(fold_part = 2, to_epoch, null) as to_epoch,
    if(fold_part = 2, to_position, null) as to_position,
    if(version_number = fold_base, version_number, 1) as version_number,
    untyped_columns, ingest_batch, inherited,
    named_struct(
        'place', named_struct(
            'source_epoch', if(fold_part = 1, fold_begun.epoch, fold_ended.epoch),
            'position', case
                when fold_part = 1 and fold_begun > fold_first_event then fold_begun.position
                when fold_part = 2 and fold_ended > fold_first_event then fold_ended.position
            end,
            'read_rank', case
                when fold_part = 1 and fold_begun < fold_first_event then -3
                when fold_part = 2 and fold_ended < fold_first_event then -2
                else 0
            end,
            'topic_generation', cast(null as int), 'kafka_offset', cast(null as bigint),
            'changed_at', cast(null as timestamp), 'op', cast(null as string),
            'source_lsn', cast(null as bigint), 'topic_partition', cast(null as string)
        ),
        'is_deleted', fold_part = 2,
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
        fold_begun.position is not null and not array_contains(fold_positions, fold_begun) as fold_is_begun,
        fold_ended.position is not null
        and not array_contains(fold_positions, fold_ended)
        {%- if truncates %}
        {#- whether a truncate ends a key is decided again where bronze has it and an event of the key from before -#}
        and not coalesce(array_contains(fold_truncates, fold_ended) and fold_first_event < fold_ended, false)
        {%- endif %}
        and not fold_ended <=> lead(fold_begun) over (partition by {{ key }} order by version_number) as fold_is_ended,
        max(
            case
                when fold_begun.position is not null and fold_begun < fold_first_event and op <> 'd' then version_number
            end
        ) over (partition by {{ key }}) as fold_base
    from (
        select
            {{ cdc_lakehouse._stored_versions(table) | indent(8) }},
            named_struct('epoch', target.from_epoch, 'position', target.from_position) as fold_begun,
            named_struct('epoch', target.to_epoch, 'position', target.to_position) as fold_ended,
            known.fold_positions,
            known.fold_positions[0] as fold_first_event
            {{- ', fold_truncates' if truncates }}
        from {{ this }} as target
        inner join (
            select
                {{ key }},
                sort_array(collect_set(if(
                    source_position is null, null,
                    named_struct('epoch', source_epoch, 'position', source_position)
                ))) as fold_positions
            from events
            group by {{ key }}
        ) as known
            on target.{{ key }} = known.{{ key }}
        {%- if truncates %}
        cross join (
            select collect_set(named_struct(
                'epoch', fold_truncate.source_epoch, 'position', fold_truncate.source_position
            )) as fold_truncates
            from {{ cdc_lakehouse._truncates(
                table, truncates, cdc_lakehouse.arrived_until_this_run(table['bronze'])
            ) | indent(12) }}
        )
        {%- endif %}
    )
)
lateral view explode(array(1, 2)) parts as fold_part
where
    version_number >= coalesce(fold_base, 0)
    and ((fold_part = 1 and fold_is_begun and op <> 'd') or (fold_part = 2 and fold_is_ended))
{%- endmacro %}
