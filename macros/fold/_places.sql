{#
    Where each of the `versions` stands within its key (docs/decisions/0001-order-of-events.md),
    as CTEs that end with `placed`: by epoch, position, the read's rank; the rest breaks ties. A
    snapshot read stands right behind the highest streamed position delivered before it, in its
    partition or an older generation of the topic, but not behind its own; where its offset is
    unknown, right before its own. An event counts at the offset of its first delivery.
#}
{% macro _places(table) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
deliveries as (
    select
        *,
        min(kafka_offset) over (
            partition by
                {{ key }}, source_epoch, topic_generation, topic_partition, is_deleted, source_lsn,
                op = 'r', if(op = 'r', changed_at, null), if(op = 'r', null, source_position)
        ) as fold_first_offset,
        if(op = 'r', position_before_read, source_position) as fold_streamed
    from (select * from versions distribute by {{ key }})
),

positions as (
    select
        *,
        case
            when op = 'r' and fold_first_offset is not null
                then greatest(
                    max(fold_streamed) over (
                        partition by {{ key }}, source_epoch, topic_generation, topic_partition
                        order by fold_first_offset asc
                        range between unbounded preceding and current row
                    ),
                    max(fold_streamed) over (
                        partition by {{ key }}, source_epoch order by topic_generation asc
                        range between unbounded preceding and 1 preceding
                    )
                )
        end as fold_delivered_before
    from deliveries
),

placed as (
    select
        *,
        named_struct(
            'source_epoch', source_epoch,
            'position', case
                when op <> 'r' or fold_first_offset is null then source_position
                {#- of a column that a stored row carries, its own position is not known #}
                when fold_part < 2 and fold_delivered_before > source_position then source_position
                else fold_delivered_before
            end,
            'read_rank', case when op <> 'r' then 0 when fold_first_offset is null then -1 else 1 end,
            'topic_generation', topic_generation, 'kafka_offset', fold_first_offset,
            'changed_at', changed_at, 'op', op, 'source_lsn', source_lsn,
            'topic_partition', topic_partition
        ) as fold_place
    from positions
)
{%- endmacro %}
