{#
    Every version of each key's row, from change events and, with `stored` (see
    _last_versions), the row that a key's last version has: one row for each time between two
    changes of a declared column. The order of the events is the fold's (see _placed), and so
    is a column's value at a place: that of the event or, where it left the column out, of the
    newest event before it in the same life.

    What the create of a key change left out is the previous key's: `inherited` (see
    _inherited_values) has it. Without it these columns are null, `fold_lacks` names them, and
    a version ends also where they change: the key has to be computed again.

    Also `fold_ended` (a delete ended the version) and, of an increment, `fold_replays`: the
    key's stored row does not tell enough, see below.
#}
{% macro history_rows(events, table, stored=none, inherited=none, is_increment=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set columns = table['columns'] | reject('equalto', table['key']) | list -%}
{%- set is_change = "fold_part = 0 and op <> 'r'" -%}
with
events as (
    {{ events | indent(4) }}
),

{{ cdc_lakehouse._placed(table) }},

changes as (
    select
        {{ key }}, 0 as fold_part, fold_place, -kafka_offset as fold_delivery, event_id,
        op, is_deleted, source_epoch,
        greatest(source_position, fold_place.position) as source_position,
        changed_at, ingest_batch, unavailable_columns, untyped_columns,
        {%- for column in columns %} `{{ column }}`,{% endfor %}
        topic_generation, topic_partition, fold_first_offset,
        source_position is not null as fold_has_position,
        {#- of nulls, and not null itself: Spark's interpreted projections, as Hudi's merge uses
            them, fail on a null struct in a struct -#}
        named_struct(
            'topic_generation', if(op = 'r' and fold_first_offset is not null, topic_generation, null),
            'topic_partition', if(op = 'r' and fold_first_offset is not null, topic_partition, null),
            'kafka_offset', if(op = 'r', fold_first_offset, null)
        ) as fold_read,
        0 as fold_before,
        cast(null as struct<source_epoch: int, source_position: string>) as inherited,
        {#- what an increment compares its events with -#}
        cast(null as struct<
            place: struct<epoch: int, position: string>,
            ended: struct<epoch: int, position: string>,
            ended_at: timestamp, changed_at: timestamp, is_read: boolean, is_inheriting: boolean
        >) as fold_last
    from placed
    {%- if stored %}
    union all
    {#- the row as it began (part 1) and, of a deleted one, its delete (part 2) #}
    select
        {{ key }}, fold_part, last_event.place as fold_place,
        cast(null as bigint) as fold_delivery, cast(null as string) as event_id,
        if(fold_part = 1, op, 'd') as op,
        fold_part = 2 as is_deleted,
        if(fold_part = 1, from_epoch, to_epoch) as source_epoch,
        if(fold_part = 1, from_position, to_position) as source_position,
        if(fold_part = 1, valid_from, valid_to) as changed_at,
        ingest_batch,
        if(fold_part = 1, last_event.unknown_columns, cast(array() as array<string>)) as unavailable_columns,
        if(fold_part = 1, untyped_columns, null) as untyped_columns,
        {%- for column in columns %}
        if(fold_part = 1, `{{ column }}`, null) as `{{ column }}`,
        {%- endfor %}
        cast(null as int) as topic_generation,
        cast(null as string) as topic_partition,
        cast(null as bigint) as fold_first_offset,
        false as fold_has_position,
        last_event.last_read,
        if(op = 'd', 0, version_number - 1) as fold_before,
        if(fold_part = 1, inherited, null) as inherited,
        named_struct(
            'place', named_struct(
                'epoch', last_event.place.source_epoch, 'position', last_event.place.position
            ),
            'ended', named_struct(
                'epoch', coalesce(to_epoch, from_epoch), 'position', coalesce(to_position, from_position)
            ),
            'ended_at', coalesce(valid_to, valid_from),
            'changed_at', last_event.place.changed_at,
            'is_read', last_event.place.op = 'r',
            'is_inheriting', last_event.is_inheriting
        ) as fold_last
    from (
        {{ stored | indent(8) }}
    )
    lateral view explode(
        filter(array(if(op = 'd', null, 1), if(valid_to is null, null, 2)), part -> part is not null)
    ) parts as fold_part
    {%- endif %}
),

{#- A read of a blocking snapshot may overtake changes: it has seen them, and they are delivered
    behind it. It is no version then, and has no value of a column that these changes brought.
    The reads that a stream begins with are no later than the first change in the log, though
    its time may be lower: they overtook nothing, unless a create says that there was no row. -#}
followed as (
    select
        *,
        {#- a read may have a later time and position than a change that stands behind it, and
            clocks step back: no version begins after the next one -#}
        min(changed_at) over from_here_on as valid_from,
        if(source_position is null, null, min(
            if(source_position is null, null, named_struct('epoch', source_epoch, 'position', source_position))
        ) over from_here_on).position as from_position,
        {%- for column in table['carried'] %}
        min(
            if(
                {{ is_change }} and (op in ('c', 'd') or not array_contains(unavailable_columns, '{{ column }}')),
                changed_at, null
            )
        ) over from_here_on as fold_next_{{ loop.index }}_at,
        {%- endfor %}
        coalesce(
            fold_part = 0 and op = 'r' and fold_has_position
            and min(if({{ is_change }}, changed_at, null)) over from_here_on <= changed_at
            and (
                lead(source_epoch) over backwards = source_epoch
                or last_value(if({{ is_change }}, op, null), true) over from_here_on = 'c'
            ),
            false
        ) as fold_overtakes
    from changes
    window
        backwards as (
            partition by {{ key }}
            order by fold_place desc, fold_part desc, fold_delivery desc, event_id desc
        ),
        {#- in reverse: Spark recomputes a frame up to the last row for every row -#}
        from_here_on as (
            partition by {{ key }}
            order by fold_place desc, fold_part desc, fold_delivery desc, event_id desc
            rows between unbounded preceding and current row
        )
),

states as (
    select
        {{ key }}, fold_part, fold_place, fold_delivery, event_id, op, is_deleted,
        source_epoch, source_position, untyped_columns, fold_before, inherited, fold_last,
        {%- for column in table['others'] %} `{{ column }}`,{% endfor %}
        {%- for column in table['carried'] %}
        {%- set is_known = "not array_contains(unavailable_columns, '" ~ column ~ "')" %}
        last_value(
            case
                when
                    ({{ is_known }} or fold_part = 1 or op in ('c', 'd', 'r'))
                    and not (fold_overtakes and coalesce(fold_next_{{ loop.index }}_at <= changed_at, false))
                    then named_struct('is_known', {{ is_known }}, 'value', `{{ column }}`)
            end, true
        ) over so_far as fold_value_{{ loop.index }},
        {%- endfor %}
        last_value(
            case
                when fold_part <> 1 and op in ('c', 'd', 'r') and not fold_overtakes then named_struct(
                    'op', op, 'source_epoch', source_epoch, 'source_position', source_position
                )
            end, true
        ) over so_far as fold_life,
        valid_from, from_position, fold_overtakes,
        max(if(op = 'r' and fold_has_position, changed_at, null)) over of_key as fold_read_at,
        max(ingest_batch) over of_key as ingest_batch,
        max(fold_read) over of_key as fold_read
        {%- if is_increment %},
        {#- An event that stands behind all that the row comes from adds versions to it, and
            changes none. Others may, as may one that moves a read or that a read overtook; and what a
            key inherits, in this life or one before, is not known from its row. -#}
        max(
            fold_part = 0 and (
                {%- set snapshots = cdc_lakehouse.complete_snapshots(table['bronze']) if execute else [] %}
                {%- if snapshots %}
                coalesce(
                    named_struct('epoch', source_epoch, 'position', source_position)
                    <= {{ cdc_lakehouse.point(*snapshots[-1]) }},
                    true
                ) or
                {%- endif %}
                (fold_stored is not null and not coalesce(
                    (op in ('u', 'd') or op = 'c' and size(unavailable_columns) = 0)
                    and named_struct('epoch', source_epoch, 'position', source_position) > fold_stored.place
                    and named_struct('epoch', source_epoch, 'position', source_position) >= fold_stored.ended
                    and changed_at >= fold_stored.ended_at
                    and if(
                        fold_stored.is_read,
                        changed_at > fold_stored.changed_at, changed_at >= fold_stored.changed_at
                    )
                    and (
                        fold_last_read.topic_generation is null
                        or topic_generation > fold_last_read.topic_generation
                        or (
                            topic_generation = fold_last_read.topic_generation
                            and (
                                topic_partition is null
                                or (
                                    topic_partition = fold_last_read.topic_partition
                                    and fold_first_offset > fold_last_read.kafka_offset
                                )
                            )
                        )
                    )
                    and not fold_stored.is_inheriting,
                    false
                ))
            )
        ) over of_key as fold_replays
        {%- endif %}
    from {% if is_increment -%}
    (
        select
            *,
            max(fold_last) over (partition by {{ key }}) as fold_stored,
            max(if(fold_part > 0, fold_read, null)) over (partition by {{ key }}) as fold_last_read
        from followed
    )
    {%- else -%}
    followed
    {%- endif %}
    window
        of_key as (partition by {{ key }}),
        so_far as (
            partition by {{ key }} order by fold_place, fold_part, fold_delivery, event_id
            rows between unbounded preceding and current row
        )
),

known as (
    select
        states.*,
        filter(
            cast(array(
                {%- for column in table['carried'] %}
                if(coalesce(fold_value_{{ loop.index }}.is_known, false), null, '{{ column }}')
                {{- ',' if not loop.last }}
                {%- endfor %}
            ) as array<string>),
            name -> name is not null
        ) as fold_unknown
        {%- if inherited %},
        {%- for column in table['carried'] %}
        previous.`{{ column }}` as fold_previous_{{ loop.index }},
        {%- endfor %}
        max(previous.ingest_batch) over (partition by states.{{ key }}) as fold_previous_batch
        {%- endif %}
    from states
    {%- if inherited %}
    left join {{ inherited }} as previous
        on
            states.{{ key }} = previous.{{ key }}
            and states.fold_life.op = 'c'
            and states.fold_life.source_epoch = previous.source_epoch
            and states.fold_life.source_position = previous.source_position
    {%- endif %}
    where not states.fold_overtakes
),

valued as (
    select
        *,
        named_struct(
            'is_deleted', is_deleted,
            {%- for column in table['others'] %}
            '{{ column }}', `{{ column }}`,
            {%- endfor %}
            {%- for column in table['carried'] %}
            {%- if inherited %}
            '{{ column }}', if(
                fold_value_{{ loop.index }}.is_known,
                fold_value_{{ loop.index }}.value, fold_previous_{{ loop.index }}
            ),
            {%- else %}
            '{{ column }}', fold_value_{{ loop.index }}.value,
            {%- endif %}
            {%- endfor %}
            'untyped_columns', untyped_columns
        ) as fold_row,
        case
            when fold_life.op = 'c' and size(fold_unknown) > 0 then named_struct(
                'source_epoch', fold_life.source_epoch, 'source_position', fold_life.source_position
            )
        end as fold_inherited
    from known
),

compared as (
    select
        *,
        lag(is_deleted) over so_far as fold_was_deleted,
        not (
            lag(fold_row) over so_far <=> fold_row
            {%- if not inherited and table['carried'] %}
            and lag(fold_inherited) over so_far <=> fold_inherited
            and (fold_inherited is null or lag(fold_unknown) over so_far <=> fold_unknown)
            {%- endif %}
        ) as fold_is_changed,
        lead(true) over so_far is null as fold_is_last
    from valued
    window so_far as (
        partition by {{ key }} order by fold_place, fold_part, fold_delivery, event_id
    )
),

{#- A version begins, or a delete ends one. -#}
turns as (
    select
        *,
        not is_deleted and fold_is_changed as fold_is_begin,
        is_deleted and not coalesce(fold_was_deleted, true) as fold_is_end,
        count_if(not is_deleted and fold_is_changed) over of_key as fold_versions,
        max(fold_before) over of_key as fold_versions_before,
        max(case when fold_is_last then named_struct(
            'place', fold_place, 'is_deleted', is_deleted, 'unknown_columns', fold_unknown,
            'is_inheriting', fold_inherited is not null or coalesce(
                fold_read_at > fold_place.changed_at
                or (fold_read_at = fold_place.changed_at and op <> 'r'),
                false
            ),
            'last_read', fold_read
        ) end) over of_key as last_event
    from compared
    window of_key as (partition by {{ key }})
),

numbered as (
    select
        *,
        fold_versions = 0 as fold_is_memory,
        fold_versions_before + greatest(count_if(fold_is_begin) over so_far, 1) as version_number,
        lead(named_struct(
            'at', valid_from, 'epoch', source_epoch, 'position', from_position, 'is_end', fold_is_end
        )) over so_far as fold_next
    from turns
    where fold_is_begin or fold_is_end or (fold_is_last and fold_versions = 0)
    window so_far as (
        partition by {{ key }} order by fold_place, fold_part, fold_delivery, event_id
    )
)

select
    concat(cast({{ key }} as string), '#', version_number) as history_id,
    {%- for column in table['columns'] %}
    {{ key if column == table['key'] else 'fold_row.`%s`' % column }} as `{{ column }}`,
    {%- endfor %}
    valid_from,
    if(fold_is_memory, valid_from, fold_next.at) as valid_to,
    not fold_is_memory and fold_next is null as is_current,
    if(fold_is_memory, 'd', op) as op,
    source_epoch as from_epoch,
    from_position,
    if(fold_is_memory, source_epoch, fold_next.epoch) as to_epoch,
    if(fold_is_memory, from_position, fold_next.position) as to_position,
    version_number,
    untyped_columns,
    {{ 'greatest(ingest_batch, fold_previous_batch)' if inherited else 'ingest_batch' }} as ingest_batch,
    if(fold_part = 0, fold_inherited, inherited) as inherited,
    if(fold_versions = 0 or version_number = fold_versions_before + fold_versions, last_event, null) as last_event,
    if(fold_part = 0 and fold_inherited is not null, fold_unknown, null) as fold_lacks,
    coalesce(fold_next.is_end, false) as fold_ended
    {{- ',\n    fold_replays' if is_increment }}
from numbered
where fold_is_begin or fold_is_memory
{%- endmacro %}
