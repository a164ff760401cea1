{#
    CTEs that reduce the change events in `events` to the newest version of each key; the
    last is `<events>_newest`.

    Position within a key (docs/decisions/0001-order-of-events.md): the epoch, then, among
    streamed events, the LSN. A snapshot read carries the LSN of when it was read, or none,
    though a transaction that was open then brings lower ones later. In its partition it
    stands where its offset puts it: after the streamed events delivered before it, before
    those delivered after it. Only an event's first delivery counts.

    A value that an event did not bring is the last one brought before it in the same life
    of the row; a create, a delete and a snapshot read begin a life. `life_start` is where a
    life begins with a create, whose missing values are in another key's row.
#}
{% macro newest_versions(events, table, traits={'reads': true, 'unavailable': true}) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set delivery = key ~ ', source_epoch, topic, kafka_partition' -%}
{{ events }}_deliveries as (

    select
        *,
        max(ingest_batch) over (partition by {{ key }}) as newest_batch,
        row_number() over (
            partition by
                {{ delivery }},
                op = 'r',
                source_lsn,
                case when source_lsn is null then coalesce(string(changed_at), event_id) end
            order by kafka_offset asc nulls last, event_id asc
        ) as delivery

    from {{ events }}

),

{% if traits['reads'] -%}
{{ events }}_neighbours as (

    select
        *,
        max(source_lsn) over (
            partition by {{ delivery }}
            order by kafka_offset asc
            rows between unbounded preceding and current row
        ) as lsn_before,
        min(case when op <> 'r' then source_lsn end) over (
            partition by {{ delivery }}
            order by kafka_offset asc
            rows between current row and unbounded following
        ) as lsn_after

    from {{ events }}_deliveries

    where delivery = 1

),

{{ events }}_placed as (

    select
        *,
        case
            when op <> 'r' or kafka_offset is null then source_lsn
            else least(lsn_before, lsn_after)
        end as position_lsn,
        case
            when op <> 'r' then 0
            when kafka_offset is null or lsn_before is null then -1
            when lsn_before >= lsn_after then -1
            else 1
        end as read_rank

    from {{ events }}_neighbours

),

{%- else -%}
{{ events }}_placed as (

    select
        *,
        source_lsn as lsn_before,
        source_lsn as position_lsn,
        0 as read_rank

    from {{ events }}_deliveries

    where delivery = 1

),

{% endif -%}
{{ events }}_lives as (

    select
        *,
        {%- if traits['unavailable'] %}
        count_if(op in ('c', 'd', 'r')) over (
            partition by {{ key }} order by {{ position_order() }}
        ) as life,
        {%- endif %}
        lead(event_id) over (
            partition by {{ key }} order by {{ position_order() }}
        ) is null as is_newest,
        last(source_lsn, true) over (
            partition by {{ key }}, source_epoch order by {{ position_order() }}
        ) as last_lsn

    from {{ events }}_placed

),

{{ events }}_filled as (

    select
        *,
        {%- if traits['unavailable'] %}
        first(
            case when op = 'c' then named_struct('epoch', source_epoch, 'lsn', source_lsn) end
        ) over (partition by {{ key }}, life order by {{ position_order() }}) as life_start
        {%- for column in table['columns'] if column != table['key'] %},
        last(
            case
                when not array_contains(unavailable_columns, '{{ column }}')
                    then named_struct('value', `{{ column }}`)
            end,
            true
        ) over (
            partition by {{ key }}, life order by {{ position_order() }}
        ) as `known_{{ column }}`
        {%- endfor %}
        {%- else %}
        cast(null as struct<epoch: int, lsn: bigint>) as life_start
        {%- for column in table['columns'] if column != table['key'] %},
        named_struct('value', `{{ column }}`) as `known_{{ column }}`
        {%- endfor %}
        {%- endif %}

    from {{ events }}_lives

),

{{ events }}_newest as (

    select * from {{ events }}_filled

    where is_newest

)
{%- endmacro %}
