{#
    What a history has stored of the keys of `events` (a CTE), as row_states reads it: a version's row
    (part 2) and the delete that ended it (part 1). Of each key the last version; with `is_gone` the
    versions and deletes whose event bronze has no more, each at its place. A version begins at the
    position of one of its key's events.

    Of the versions that began before all events of a key only the last is needed: it stands
    before them, also before a read whose place has no position.
#}
{% macro _stored_versions(table, is_gone=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set stored = cdc_lakehouse.stored_columns(this) -%}
{%- set truncates = cdc_lakehouse.decided_truncates('apply') if execute else [] -%}
select
    {{ key }}, __cdc_part,
    {% if is_gone -%}
    named_struct(
        'source_epoch', __cdc_at.epoch,
        'position', if(__cdc_at > __cdc_first_event, __cdc_at.position, null),
        {#- where only a read without a position is known, their times say which came first #}
        'read_rank', case
            when __cdc_at > __cdc_first_event then 0
            when __cdc_read_at <= if(__cdc_part = 2, valid_from, valid_to) then 4 - __cdc_part
            else -1 - __cdc_part
        end,
        'topic_generation', cast(null as int), 'kafka_offset', cast(null as bigint),
        'changed_at', cast(null as timestamp), 'op', cast(null as string),
        'source_lsn', cast(null as bigint), 'topic_partition', __cdc_topic_partition
    )
    {%- else -%}
    cdc_state.place
    {%- endif %} as __cdc_place,
    cast(null as bigint) as __cdc_delivery, cast(null as string) as event_id,
    if(__cdc_part = 2, op, 'd') as op,
    __cdc_part = 1 as is_deleted,
    if(__cdc_part = 2, from_epoch, to_epoch) as source_epoch,
    if(__cdc_part = 2, from_position, to_position) as source_position,
    false as __cdc_has_position,
    cast(null as bigint) as source_lsn, cast(null as int) as topic_generation,
    cast(null as string) as topic_partition, cast(null as bigint) as __cdc_first_offset,
    if(__cdc_part = 2, valid_from, valid_to) as changed_at,
    cast(null as timestamp) as ingested_at, ingest_batch, cast(null as timestamp) as last_read_at,
    if(__cdc_part = 2, {{ "array()" if is_gone else 'cdc_state.unknown_columns' }}, array()) as unavailable_columns,
    if(__cdc_part = 2, untyped_columns, null) as untyped_columns,
    {%- for column in table['columns'] if column != table['key'] %}
    {{ 'if(__cdc_part = 2, `%s`, null)' % column if column in stored else 'null' }} as `{{ column }}`,
    {%- endfor %}
    {{ 'named_struct(\'topic_generation\', cast(null as int), \'topic_partition\', cast(null as string),
        \'kafka_offset\', cast(null as bigint))' if is_gone else 'cdc_state.last_read' }} as __cdc_read,
    named_struct(
        'place', named_struct('epoch', cdc_state.place.source_epoch, 'position', cdc_state.place.position),
        'ended', named_struct(
            'epoch', coalesce(to_epoch, from_epoch), 'position', coalesce(to_position, from_position)
        ),
        'ended_at', coalesce(valid_to, valid_from),
        'changed_at', cdc_state.place.changed_at,
        'is_read', cdc_state.place.op = 'r',
        'is_inheriting', cdc_state.is_inheriting,
        'number_before', {{ 'if(version_number = __cdc_base, version_number - 1, 0)' if is_gone
            else "if(op = 'd', 0, version_number - 1)" }},
        'inherited', cdc_state.inherited
    ) as __cdc_version
{%- if not is_gone %}
from {{ this }} as target
left semi join (select {{ key }} from events) as touched
    on target.{{ key }} = touched.{{ key }}
lateral view explode(array(1, 2)) parts as __cdc_part
where
    cdc_state is not null
    and if(__cdc_part = 2, op <> 'd', valid_to is not null)
{%- else %}
from (
    select
        *,
        if(__cdc_part = 2, __cdc_begun, __cdc_ended) as __cdc_at,
        max(
            case
                when
                    __cdc_is_gone and op <> 'd' and __cdc_begun < __cdc_first_event
                    and not coalesce(__cdc_read_at <= valid_from, false)
                    then version_number
            end
        ) over (partition by {{ key }}) as __cdc_base
    from (
        select
            target.*, known.__cdc_positions, known.__cdc_positions[0] as __cdc_first_event,
            array_max(known.__cdc_read_times) as __cdc_read_at,{{ ' __cdc_truncates,' if truncates }}
            {#- a read without a position is known by its time, which may be lower in the version #}
            if(
                target.from_position is null,
                not exists(
                    known.__cdc_read_times,
                    read_at -> read_at >= target.valid_from
                    and coalesce(read_at < target.valid_to or target.valid_from = target.valid_to, true)
                ),
                not array_contains(
                    known.__cdc_positions, named_struct('epoch', target.from_epoch, 'position', target.from_position)
                )
            ) as __cdc_is_gone,
            named_struct('epoch', target.from_epoch, 'position', target.from_position) as __cdc_begun,
            named_struct('epoch', target.to_epoch, 'position', target.to_position) as __cdc_ended,
            max(target.cdc_state.place.topic_partition) over of_key as __cdc_topic_partition,
            lead(named_struct('epoch', target.from_epoch, 'position', target.from_position))
                over (partition by target.{{ key }} order by target.version_number) as __cdc_next_begun
        from {{ this }} as target
        inner join (
            select
                {{ key }}, collect_set(if(op = 'r' and source_position is null, changed_at, null)) as __cdc_read_times,
                sort_array(collect_set(if(
                    source_position is null, null,
                    named_struct('epoch', source_epoch, 'position', source_position)
                ))) as __cdc_positions
            from events
            group by {{ key }}
        ) as known
            on target.{{ key }} = known.{{ key }}
        {%- if truncates %}
        cross join (
            select collect_set(named_struct(
                'epoch', __cdc_truncate.source_epoch, 'position', __cdc_truncate.source_position
            )) as __cdc_truncates
            from {{ cdc_lakehouse._truncates(
                table, truncates, cdc_lakehouse.arrived_until_this_run(table['bronze'])
            ) | indent(12) }}
        )
        {%- endif %}
        window of_key as (partition by target.{{ key }})
    )
    lateral view explode(array(1, 2)) parts as __cdc_part
)
where
    version_number >= coalesce(__cdc_base, 0)
    and if(
        __cdc_part = 2,
        __cdc_is_gone and op <> 'd',
        to_position is not null and not array_contains(__cdc_positions, __cdc_ended)
        and not __cdc_ended <=> __cdc_next_begun
    )
    {%- if truncates %}
    {#- whether a truncate ends a key is decided again where bronze has it and an event of the key from before #}
    and not coalesce(__cdc_part = 1 and array_contains(__cdc_truncates, __cdc_at) and __cdc_first_event < __cdc_at, false)
    {%- endif %}
{%- endif %}
{%- endmacro %}
