{#
    Every version of the events' keys: each event (part 0) and, of a stored row, itself (part 1)
    and the place where each carried column's value comes from (part 2). Of `gone` (see _gone_rows)
    with the values, else without: a stored row's wide values are read where they are needed. As CTEs
    that end with `placed`: where each version stands within its key (docs/decisions/0001-order-of-events.md), by
    epoch, position, the read's rank; the rest breaks ties.

    A snapshot read stands right behind the highest streamed position delivered before it, in its
    partition or an older generation of the topic, or of a truncate that it was taken after, but not
    behind its own; where its offset is unknown, right before its own. An event counts at the offset
    of its first delivery.
#}
{% macro _placed(table, stored=none, gone=none) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set columns = table['carried'] + table['others'] -%}
{%- if gone %}
gone as (
    {{ gone | indent(4) }}
),
{% endif %}
versions as (
    select
        {{ key }}, 0 as __cdc_part, event_id, {{ cdc_lakehouse.position_columns() | join(', ') }},
        topic_generation, topic_partition, position_before_read,
        case when op = 'r' then changed_at end as last_read_at,
        unavailable_columns,
        fields,
        {%- for column in columns %} `{{ column }}`,{% endfor %}
        cast(null as {{ cdc_lakehouse.carried_type() }}) as __cdc_stored_columns
    from events
    {%- if gone %}
    {#- a read that had lost, and whose first delivery is gone, too #}
    left anti join gone
        on events.{{ key }} = gone.{{ key }} and events.op = 'r' and events.changed_at <= gone.cdc_state.last_read_at
    {%- endif %}
    {%- if stored or gone %}
    union all
    select
        target.{{ key }}, version.__cdc_part, null as event_id,
        version.{{ cdc_lakehouse.position_columns() | join(', version.') }},
        version.topic_generation, version.topic_partition, version.position_before_read, version.last_read_at,
        version.unavailable_columns,
        null as fields,
        {%- for column in columns %} {{ 'target.' if gone else 'null as ' }}`{{ column }}`,{% endfor %}
        version.__cdc_stored_columns
    from {{ 'gone' if gone else stored }} as target
    {%- if not gone %}
    left semi join (select {{ key }} from events) as touched
        on target.{{ key }} = touched.{{ key }}
    {%- endif %}
    lateral view inline(concat(
        array(struct(
            1 as __cdc_part, {{ cdc_lakehouse.position_columns() | join(', ') }},
            cdc_state.topic_generation, cdc_state.topic_partition, cdc_state.position_before_read,
            cdc_state.last_read_at,
            transform(carried_columns, entry -> entry.column_name) as unavailable_columns,
            carried_columns as __cdc_stored_columns
        )),
        transform(
            filter(carried_columns, entry -> entry.place.op is not null),
            entry -> struct(
                2 as __cdc_part,
                entry.place.op, false as is_deleted, entry.place.source_epoch,
                entry.place.position as source_position, entry.place.source_lsn,
                entry.place.kafka_offset, entry.place.changed_at,
                cast(null as timestamp) as ingested_at, cast(null as bigint) as ingest_batch,
                cast(null as array<string>) as untyped_columns,
                if(entry.place.op = 'r', 1, -1) * entry.place.topic_generation as topic_generation,
                entry.place.topic_partition,
                case when entry.place.op = 'r' then entry.place.position end as position_before_read,
                cast(null as timestamp) as last_read_at,
                filter(
                    cast(array({{ "'" ~ table['carried'] | join("', '") ~ "'" if table['carried'] }}) as array<string>),
                    name -> not (entry.is_known and name = entry.column_name)
                ) as unavailable_columns,
                cast(null as {{ cdc_lakehouse.carried_type() }}) as __cdc_stored_columns
            )
        )
    )) version as
        __cdc_part,
        {{ cdc_lakehouse.position_columns() | join(', ') }},
        topic_generation, topic_partition, position_before_read, last_read_at,
        unavailable_columns,
        __cdc_stored_columns
    {%- endif %}
),

deliveries as (
    select
        *,
        min(kafka_offset) over (
            partition by
                {{ key }}, source_epoch, topic_generation, topic_partition, is_deleted, source_lsn,
                op = 'r', if(op = 'r', changed_at, null), if(op = 'r', null, source_position)
        ) as __cdc_first_offset,
        if(op = 'r', position_before_read, source_position) as __cdc_streamed
    from (select * from versions distribute by {{ key }})
),

positions as (
    select
        *,
        case
            when op = 'r' and __cdc_first_offset is not null
                then greatest(
                    max(__cdc_streamed) over (
                        partition by {{ key }}, source_epoch, topic_generation, topic_partition
                        order by __cdc_first_offset asc
                        range between unbounded preceding and current row
                    ),
                    max(__cdc_streamed) over (
                        partition by {{ key }}, source_epoch order by topic_generation asc
                        range between unbounded preceding and 1 preceding
                    )
                )
        end as __cdc_delivered_before
    from deliveries
),

placed as (
    select
        *,
        named_struct(
            'source_epoch', source_epoch,
            'position', case
                when op <> 'r' or __cdc_first_offset is null then source_position
                {#- of a column that a stored row carries, its own position is not known #}
                when __cdc_part < 2 and __cdc_delivered_before > source_position then source_position
                else __cdc_delivered_before
            end,
            'read_rank', case when op <> 'r' then 0 when __cdc_first_offset is null then -1 else 1 end,
            {#- of an event that was delivered in several generations the first is remembered #}
            'topic_generation', if(op = 'r', 1, -1) * topic_generation,
            'kafka_offset', __cdc_first_offset,
            'changed_at', changed_at, 'op', op, 'source_lsn', source_lsn,
            'topic_partition', topic_partition
        ) as __cdc_place
    from positions
)
{%- endmacro %}
