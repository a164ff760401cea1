{#
    The newest version of each key, from change events and, where `stored` names a silver
    table, the rows that it has of their keys. The stored row is one more event: so first
    build, increment, full refresh and replay are this one query.

    Place within a key (docs/decisions/0001-order-of-events.md): the epoch, the position, the
    read's rank, then what only breaks ties. A snapshot read stands right behind the highest
    streamed position delivered before it, in its partition or an older generation of the
    topic, but not behind its own; where its offset is unknown, right before its own position.
    An event counts at the offset of its first delivery.

    A column's value is the one with the greatest place. A create, a delete and a read begin
    a life: they bring every column, and one that they left out is unknown from then on.

    Of each carried column a stored row keeps the place where its value comes from, so that it
    yields more than one version: itself (part 1) and one for each carried column (part 2).

    Columns of the result besides the row's own: `fold_replays` (the row does not tell; see
    _needs_replay) and, with `stored`, `fold_changed` (it differs from the stored row),
    `fold_kept` (the columns whose value is the stored row's), `fold_late` and
    `fold_deleted` (the lowest positions of an event older than the stored row and of a
    delete: another key's row may have waited for them; see _rows_to_write).

    `events` is a query of event_columns; with `is_bounded` it also has `fold_bound_epoch` and
    `fold_bound_position`, and only what stands before that place counts.
#}
{% macro folded_rows(events, table, stored=none, is_bounded=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set carried = table['carried'] -%}
{%- set others = table['columns'] | reject('in', carried + [table['key']]) | list -%}
{#- an event has all of them but what only a stored row can know -#}
{%- set remembered = cdc_lakehouse.position_columns()
    | reject('in', ['position_before_read', 'last_read_at']) | list -%}
with

events as (

    {{ events | indent(4) }}

),

{% if stored -%}
stored as (

    select
        target.{{ key }},
        {%- for column in cdc_lakehouse.position_columns() %}
        target.{{ column }},
        {%- endfor %}
        target.carried_columns

    from {{ stored }} as target

    left semi join (select distinct {{ key }} from events) as touched
        on target.{{ key }} = touched.{{ key }}

),

{% endif -%}
versions as (

    select
        {{ key }},
        0 as fold_part,
        event_id,
        {%- for column in remembered %}
        {{ column }},
        {%- endfor %}
        cast(null as string) as position_before_read,
        case when op = 'r' then changed_at end as last_read_at,
        unavailable_columns,
        {%- for column in carried + others %}
        `{{ column }}`,
        {%- endfor %}
        {{ 'fold_bound_epoch' if is_bounded else 'cast(null as int) as fold_bound_epoch' }},
        {{ 'fold_bound_position' if is_bounded else 'cast(null as string) as fold_bound_position' }},
        {{ cdc_lakehouse.carried_type() }} as fold_stored_columns

    from events
    {%- if stored %}

    union all

    select
        stored.{{ key }},
        version.fold_part,
        null as event_id,
        {%- for column in cdc_lakehouse.position_columns() %}
        version.{{ column }},
        {%- endfor %}
        version.unavailable_columns,
        {%- for column in carried + others %}
        null as `{{ column }}`,
        {%- endfor %}
        null as fold_bound_epoch,
        null as fold_bound_position,
        version.fold_stored_columns

    from stored

    lateral view inline(concat(
        array(struct(
            1 as fold_part,
            {%- for column in cdc_lakehouse.position_columns() %}
            {{ column }} as {{ column }},
            {%- endfor %}
            transform(carried_columns, entry -> entry.column_name) as unavailable_columns,
            carried_columns as fold_stored_columns
        )),
        transform(
            filter(carried_columns, entry -> entry.place.op is not null),
            entry -> struct(
                2 as fold_part,
                entry.place.op as op,
                false as is_deleted,
                entry.place.source_epoch as source_epoch,
                entry.place.position as source_position,
                entry.place.source_lsn as source_lsn,
                entry.place.topic_generation as topic_generation,
                entry.place.topic_partition as topic_partition,
                entry.place.kafka_offset as kafka_offset,
                entry.place.changed_at as changed_at,
                cast(null as timestamp) as ingested_at,
                cast(null as bigint) as ingest_batch,
                cast(null as array<string>) as untyped_columns,
                case when entry.place.op = 'r' then entry.place.position end as position_before_read,
                cast(null as timestamp) as last_read_at,
                filter(
                    cast(array({{ "'" ~ carried | join("', '") ~ "'" if carried }}) as array<string>),
                    name -> not (entry.is_known and name = entry.column_name)
                ) as unavailable_columns,
                {{ cdc_lakehouse.carried_type() | indent(16) }} as fold_stored_columns
            )
        )
    )) version as
        fold_part,
        {{ cdc_lakehouse.position_columns() | join(',\n        ') }},
        unavailable_columns,
        fold_stored_columns
    {%- endif %}

),

deliveries as (

    select
        *,
        min(kafka_offset) over (
            partition by
                {{ key }},
                source_epoch,
                topic_generation,
                topic_partition,
                op = 'r',
                is_deleted,
                source_lsn,
                case when op = 'r' then changed_at end,
                case when op <> 'r' then source_position end
        ) as fold_first_offset,
        case when op = 'r' then position_before_read else source_position end as fold_streamed

    from (select * from versions distribute by {{ key }})

),

positions as (

    select
        *,
        case
            when op = 'r' and fold_first_offset is not null
                then greatest(
                    max(fold_streamed) over (
                        partition by
                            {{ key }}, source_epoch, topic_generation, topic_partition
                        order by fold_first_offset asc
                        range between unbounded preceding and current row
                    ),
                    max(fold_streamed) over (
                        partition by {{ key }}, source_epoch
                        order by topic_generation asc
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
            'topic_generation', topic_generation,
            'kafka_offset', fold_first_offset,
            'changed_at', changed_at,
            'op', op,
            'source_lsn', source_lsn,
            'topic_partition', topic_partition
        ) as fold_place

    from positions

),

reduced as (

    select
        {{ key }},
        max(named_struct(
            'fold_place', fold_place,
            'fold_part', fold_part,
            'delivery', -kafka_offset,
            'event_id', event_id,
            'fold_first_offset', fold_first_offset,
            'unavailable_columns', unavailable_columns,
            {%- for column in others %}
            '{{ column }}', `{{ column }}`,
            {%- endfor %}
            {%- for column in remembered %}
            '{{ column }}', {{ column }}{{ ',' if not loop.last }}
            {%- endfor %}
        )) filter (where fold_part < 2) as fold_newest,
        {%- for column in carried %}
        {%- set is_known = "not array_contains(unavailable_columns, '" ~ column ~ "')" %}
        max(named_struct(
            'place', fold_place,
            'is_known', {{ is_known }},
            'part', fold_part,
            'value', `{{ column }}`
        )) filter (where {{ is_known }} or op in ('c', 'd', 'r')) as `{{ column }}`,
        {%- endfor %}
        {%- if stored %}
        first(
            named_struct(
                'place', fold_place,
                'fold_first_offset', fold_first_offset,
                'op', op,
                'is_deleted', is_deleted,
                'topic_generation', topic_generation,
                'topic_partition', topic_partition,
                'kafka_offset', kafka_offset,
                'position_before_read', position_before_read,
                'last_read_at', last_read_at,
                'carried_columns', fold_stored_columns
            )
        ) filter (where fold_part = 1) as fold_stored,
        min(fold_place) filter (where fold_part = 0) as fold_lowest_place,
        min(coalesce(fold_place.position, '')) filter (where fold_part = 0) as fold_lowest_position,
        min(source_position) filter (where fold_part = 0 and op = 'd') as fold_lowest_delete,
        max(fold_place) filter (where fold_part = 2) as fold_carried_place,
        max(named_struct('place', fold_place, 'changed_at', changed_at))
            filter (where fold_part = 0 and op = 'r') as fold_read,
        {%- endif %}
        max(ingest_batch) as ingest_batch,
        max(last_read_at) as last_read_at

    from placed
    {%- if is_bounded %}

    where
        named_struct(
            'epoch', fold_place.source_epoch,
            'at', fold_place.position,
            'rank', fold_place.read_rank
        )
        < named_struct('epoch', fold_bound_epoch, 'at', fold_bound_position, 'rank', 0)
    {%- endif %}

    group by {{ key }}

),

described as (

    select
        *,
        case
            when fold_newest.fold_place.read_rank = 1 then fold_newest.fold_place.position
        end as fold_position_before_read,
        {%- if carried %}
        transform(
            filter(
                array(
                    {%- for column in carried %}
                    case
                        when array_contains(fold_newest.unavailable_columns, '{{ column }}')
                            then named_struct(
                                'column_name', '{{ column }}',
                                'is_known', coalesce(`{{ column }}`.is_known, false),
                                'place', `{{ column }}`.place
                            )
                    end
                    {{- ',' if not loop.last }}
                    {%- endfor %}
                ),
                entry -> entry is not null
            ),
            entry -> case
                when entry.place is not null then entry
                else named_struct(
                    'column_name', entry.column_name,
                    'is_known', false,
                    {#- a place of nulls, and not null itself: Spark's interpreted
                        projections fail on a null struct in an array #}
                    'place', from_json('{}', '{{ cdc_lakehouse._place_type() }}')
                )
            end
        ) as carried_columns
        {%- else %}
        {{ cdc_lakehouse.carried_type('array()') }} as carried_columns
        {%- endif %}

    from reduced

),

folded as (

    select
        {%- for column in table['columns'] %}
        {%- if column in carried %}
        `{{ column }}`.value as `{{ column }}`,
        {%- elif column == table['key'] %}
        {{ key }},
        {%- else %}
        fold_newest.`{{ column }}`,
        {%- endif %}
        {%- endfor %}
        fold_newest.op,
        fold_newest.is_deleted,
        fold_newest.source_epoch,
        greatest(fold_newest.source_position, fold_newest.fold_place.position) as source_position,
        fold_newest.source_lsn,
        fold_newest.topic_generation,
        fold_newest.topic_partition,
        fold_newest.fold_first_offset as kafka_offset,
        fold_newest.changed_at,
        fold_newest.ingested_at,
        ingest_batch,
        fold_newest.untyped_columns,
        fold_position_before_read as position_before_read,
        last_read_at,
        carried_columns,
        {%- if stored %}
        (
            fold_stored is null
            or fold_newest.fold_part = 0
            or not (
                fold_newest.fold_first_offset <=> fold_stored.kafka_offset
                and fold_position_before_read <=> fold_stored.position_before_read
                and last_read_at <=> fold_stored.last_read_at
                and carried_columns <=> fold_stored.carried_columns
            )
        ) as fold_changed,
        filter(
            array(
                {%- for column in others %}
                case when fold_newest.fold_part = 1 then '{{ column }}' end,
                {%- endfor %}
                {%- for column in carried %}
                case when `{{ column }}`.part > 0 then '{{ column }}' end,
                {%- endfor %}
                null
            ),
            name -> name is not null
        ) as fold_kept,
        case
            when fold_lowest_place < fold_stored.place then fold_lowest_position
        end as fold_late,
        fold_lowest_delete as fold_deleted,
        {%- endif %}
        coalesce(
            {{ cdc_lakehouse._needs_replay(stored) | indent(12) }}, false
        ) as fold_replays

    from described

)

select * from folded
{%- endmacro %}
