{# What a history has stored of the keys of `events` (a CTE), as row_states reads it. #}
{% macro _stored_versions(table) -%}
{%- set key, is_gone = '`' ~ table['key'] ~ '`', not table['is_increment'] -%}
{%- set begun, ended = "struct(from_epoch as epoch, from_position as position)", "struct(to_epoch as epoch, to_position as position)" -%}
select
    {{ key }}, __cdc_part, null as event_id, if(__cdc_part = -3, op, 'd') as op, __cdc_part = -2 as is_deleted,
    __cdc_at.epoch as source_epoch, __cdc_at.position as source_position, null as source_lsn, null as kafka_offset,
    if(__cdc_part = -3, valid_from, valid_to) as changed_at, null as ingested_at, ingest_batch,
    case when __cdc_part = -3 then untyped_columns end as untyped_columns, null as topic_generation, null as topic_partition,
    null as position_before_read, null as last_read_at,
    {{ 'array()' if is_gone else 'if(__cdc_part = -3, cdc_state.unknown_columns, array())' }} as unavailable_columns, null as fields,
    {%- for column in table['unchanged'] + table['others'] %}
    {{ 'case when __cdc_part = -3 then `%s` end' % column if column in table['stored'] else 'null' }} as `{{ column }}`,
    {%- endfor %}
    struct(
        struct(cdc_state.sequence.source_epoch as epoch, cdc_state.sequence.position) as at,
        coalesce(case when to_epoch is not null then {{ ended }} end, {{ begun }}) as ended,
        coalesce(valid_to, valid_from) as ended_at, cdc_state.sequence.changed_at,
        cdc_state.sequence.op = 'r' as is_read, cdc_state.is_inheriting, cdc_state.inherited,
        {% if is_gone -%}
        0 as number_before, __cdc_sequence as sequence, case when false then cdc_state.last_read end as last_read
        {%- else -%}
        if(op = 'd', 0, version_number - 1) as number_before, cdc_state.sequence, cdc_state.last_read
        {%- endif %}
    ) as __cdc_stored_state
{%- if not is_gone %}
from (
    select target.*, __cdc_part, if(__cdc_part = -3, {{ begun }}, {{ ended }}) as __cdc_at
    from {{ this }} as target
    left semi join (select {{ key }} from events) as touched on target.{{ key }} = touched.{{ key }}
    lateral view explode(array(-3, -2)) parts as __cdc_part
    where cdc_state is not null and if(__cdc_part = -3, op <> 'd', valid_to is not null)
)
{%- else %}
from (
    select *, struct(
        __cdc_at.epoch as source_epoch, case when __cdc_at > __cdc_positions[0] then __cdc_at.position end as position,
        {#- where only a read without a position is known, their times say which came first #}
        case
            when __cdc_at > __cdc_positions[0] then 0
            when array_max(__cdc_read_times) <= if(__cdc_part = -3, valid_from, valid_to) then 2
            else -2
        end as read_rank,
        int(null) as topic_generation, bigint(2 * version_number + if(__cdc_part = -3, 0, 1)) as kafka_offset,
        timestamp(null) as changed_at, string(null) as op, bigint(null) as source_lsn,
        __cdc_topic_partition as topic_partition
    ) as __cdc_sequence
    from (
        select target.*, __cdc_part, __cdc_positions, __cdc_read_times, if(__cdc_part = -3, {{ begun }}, {{ ended }}) as __cdc_at
        from (
            select
                *, max(cdc_state.sequence.topic_partition) over (partition by {{ key }}) as __cdc_topic_partition,
                lead({{ begun }}) over (partition by {{ key }} order by version_number) as __cdc_next_begun
            from {{ this }}
        ) as target
        inner join (
            select
                {{ key }}, collect_set(case when op = 'r' and source_position is null then changed_at end) as __cdc_read_times,
                sort_array(collect_set(
                    case when source_position is not null then struct(source_epoch as epoch, source_position as position) end
                )) as __cdc_positions
            from events
            group by {{ key }}
        ) as known on target.{{ key }} = known.{{ key }}
        lateral view explode(array(-3, -2)) parts as __cdc_part
    )
    {%- if table['truncates'] %}
    cross join (select collect_set(__cdc_truncate.at) as __cdc_truncates from truncates)
    {%- endif %}
    where
        {%- if table['truncates'] %}
        not coalesce(__cdc_part = -2 and array_contains(__cdc_truncates, __cdc_at) and __cdc_positions[0] < __cdc_at, false) and
        {%- endif %}
        if(
            __cdc_part = -3,
            op <> 'd' and if(
                from_position is null,
                {#- a read without a position is known by its time, which may be lower in the version #}
                not exists(__cdc_read_times, at -> at >= valid_from and coalesce(at < valid_to or valid_from = valid_to, true)),
                not array_contains(__cdc_positions, __cdc_at)
            ),
            to_position is not null and not array_contains(__cdc_positions, __cdc_at) and not __cdc_at <=> __cdc_next_begun
        )
)
{%- endif %}
{%- endmacro %}
