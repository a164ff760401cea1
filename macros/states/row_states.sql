{# What the row of each key was after each of its versions, in their order (docs/decisions/0001, 0027). #}
{% macro row_states(events, table, stored=none) -%}
{%- set key, is_silver = '`' ~ table['key'] ~ '`', not table['is_history'] -%}
{#- of the states before the last one: histories and rows that inherit values read them; in the last one a change wins
    over the reads that overtake it, which need not be known -#}
{%- set has_states, is_change = 'wanted' in table or not is_silver, "__cdc_part = 0 and op <> 'r'" -%}
{%- set streamed = "case when op = 'r' then position_before_read when __cdc_part >= -1 then source_position end" -%}
{#- of a column that a stored row carries, its own position is not known -#}
{%- set position = "if(op <> 'r' or __cdc_first_offset is null or __cdc_part >= 0 and __cdc_delivered_before > source_position,"
    ~ " source_position, __cdc_delivered_before)" -%}
{%- set point = "named_struct('epoch', source_epoch, 'position', coalesce(__cdc_sequence.position, ''))" -%}
{#- in reverse: Spark recomputes a frame up to the last row for every row -#}
{%- set backwards = 'partition by %s order by __cdc_sequence desc, __cdc_part desc, -kafka_offset desc, event_id desc' % key -%}
with
{{ events }},
{%- if stored %}

stored as (
    {{ stored | indent(4) }}
),
{%- endif %}

versions as (
    select
        {{ key }}, 0 as __cdc_part, event_id, {{ cdc_lakehouse.position_columns() | join(', ') }}, topic_generation,
        topic_partition, position_before_read, case when op = 'r' then changed_at end as last_read_at, unavailable_columns,
        fields, {% for column in table['unchanged'] + table['others'] %}`{{ column }}`, {% endfor -%}
        {{ 'null' if stored else 'int(null)' }} as __cdc_stored_state
    from events
    {%- if stored %}
    {%- if is_silver and not table['is_increment'] %}
    {#- a read that had lost, and whose first delivery is gone, too #}
    left anti join stored
        on
            events.{{ key }} = stored.{{ key }} and events.op = 'r' and stored.__cdc_part = 1
            and events.changed_at <= stored.last_read_at
    {%- endif %}
    union all
    select * from stored
    {%- endif %}
    distribute by {{ key }}
),

deliveries as (
    select *, min(kafka_offset) over (
        partition by
            {{ key }}, source_epoch, topic_generation, topic_partition, is_deleted, source_lsn,
            op = 'r', case when op = 'r' then changed_at end, case when op <> 'r' then source_position end
    ) as __cdc_first_offset
    from versions
),

positions as (
    select *, case when op = 'r' and __cdc_first_offset is not null then greatest(
        max({{ streamed }}) over (
            partition by {{ key }}, source_epoch, topic_generation, topic_partition
            order by __cdc_first_offset range between unbounded preceding and current row
        ),
        max({{ streamed }}) over (
            partition by {{ key }}, source_epoch order by topic_generation range between unbounded preceding and 1 preceding
        )
        {%- if table['snapshots'] %},
        {#- reads without an offset: of complete snapshots that lacked the row, in a partition without their reads #}
        array_max(filter(
            collect_set(case when op = 'r' and is_deleted and __cdc_first_offset is null then struct(source_position, changed_at) end)
                over (partition by {{ key }}, source_epoch),
            gone -> coalesce(gone.source_position < source_position, gone.changed_at < changed_at)
        )).source_position
        {%- endif %}
    ) end as __cdc_delivered_before
    from deliveries
),

placed as (
    select *, {{ 'if(__cdc_part < 0, __cdc_stored_state.sequence, ' if stored and not is_silver }}named_struct(
        'source_epoch', source_epoch,
        'position', {{ position }},
        'read_rank', case when op <> 'r' then 0 when __cdc_first_offset is null then -1 else 1 end,
        {#- of an event that was delivered in several generations the first is remembered #}
        'topic_generation', if(op = 'r', 1, -1) * topic_generation, 'kafka_offset', __cdc_first_offset,
        'changed_at', changed_at, 'op', op, 'source_lsn', source_lsn, 'topic_partition', topic_partition
    ){{ ')' if stored and not is_silver }} as __cdc_sequence,
        if(__cdc_part < -1, source_position, greatest(source_position, {{ position }})) as __cdc_position
    from positions
),

followed as (
    select
        *,
        {%- if not is_silver %}
        {#- no later than of the versions behind #}
        min(changed_at) over from_here_on as __cdc_valid_from,
        case when __cdc_position is not null then (min(
            case when __cdc_position is not null then named_struct('epoch', source_epoch, 'position', __cdc_position) end
        ) over from_here_on).position end as __cdc_from_position,
        {%- endif %}
        {%- if has_states %}
        {%- for column in table['unchanged'] %}
        min(case when {{ is_change }} and (op in ('c', 'd') or not array_contains(unavailable_columns, '{{ column }}'))
            then changed_at end) over from_here_on as __cdc_next_{{ loop.index }}_at,
        {%- endfor %}
        coalesce(
            __cdc_part = 0 and op = 'r' and source_position is not null
            and min(case when {{ is_change }} then changed_at end) over from_here_on <= changed_at and (
                lead(source_epoch) over backwards = source_epoch or last_value(case when {{ is_change }} then op end, true) over from_here_on = 'c'
            ), false
        ) as __cdc_overtakes,
        {%- endif %}
        row_number() over backwards as __cdc_number, first_value(__cdc_part = 0 and size(unavailable_columns) = 0) over from_here_on as __cdc_is_whole
    from placed
    window
        backwards as ({{ backwards }}),
        from_here_on as ({{ backwards }} rows between unbounded preceding and current row)
)

select
    *,
    {%- for column in table['unchanged'] %}
    {%- set is_known = "not array_contains(unavailable_columns, '" ~ column ~ "')" %}
    max(case
        when {{ 'not __cdc_is_whole and ' if not has_states }}({{ is_known }} or op in ('c', 'd', 'r'))
            {{- ' and not (__cdc_overtakes and coalesce(__cdc_next_%s_at <= changed_at, false))' % loop.index if has_states }}
            then named_struct('sequence', __cdc_sequence, 'is_known', {{ is_known }}, 'part', __cdc_part, 'value', `{{ column }}`)
    end) over {{ 'so_far' if has_states else 'of_key' }} as __cdc_value_{{ loop.index }},
    {%- endfor %}
    {%- if has_states %}
    last_value(case when op in ('c', 'd', 'r') and not __cdc_overtakes then named_struct(
        'op', op, 'source_epoch', source_epoch, 'source_position', __cdc_position, 'ingest_batch', ingest_batch
    ) end, true) over so_far as __cdc_incarnation,
    {%- endif %}
    __cdc_number = min(case when __cdc_part <> -1 then __cdc_number end) over of_key as __cdc_is_last,
    {%- if is_silver %}
    collect_set(case when size(fields) > 0 then fields end) over of_key as __cdc_fields,
    {%- else %}
    max(case when __cdc_part = 0 and op = 'r' and source_position is not null then changed_at end) over of_key as __cdc_read_at,
    max(case when __cdc_part = 0 and op = 'r' then named_struct(
        'topic_generation', case when __cdc_first_offset is not null then topic_generation end, 'topic_partition',
        case when __cdc_first_offset is not null then topic_partition end, 'kafka_offset', __cdc_first_offset
    ) {{ 'else __cdc_stored_state.last_read ' if stored }}end) over of_key as __cdc_read,
    {%- endif %}
    {%- if table['is_increment'] %}
    min(case when __cdc_part = 0 then {{ point }} end) over of_key as __cdc_lowest,
    min(case when __cdc_part = 0 and op = 'd' then {{ point }} end) over of_key as __cdc_deleted,
    {%- if is_silver %}
    max(case when __cdc_part = 1 then struct(
        __cdc_sequence as sequence, __cdc_first_offset as first_offset, op, is_deleted, topic_generation, topic_partition,
        kafka_offset, position_before_read, last_read_at, __cdc_stored_state as carried_columns
    ) end) over of_key as __cdc_stored,
    min(case when __cdc_part = 0 then __cdc_sequence end) over of_key as __cdc_lowest_sequence,
    max(case when __cdc_part = 0 then __cdc_sequence end) over of_key as __cdc_highest_sequence,
    max(case when __cdc_part = -1 then __cdc_sequence end) over of_key as __cdc_unchanged_sequence,
    min(case when __cdc_part = 0 and op <> 'r' then struct(topic_generation, __cdc_first_offset as first_offset) end) over of_key as __cdc_lowest_offset,
    max(case when __cdc_part = 0 and op = 'r' then struct(__cdc_sequence as sequence, changed_at) end) over of_key as __cdc_read,
    {%- else %}
    max(__cdc_stored_state) over of_key as __cdc_stored,
    {%- endif %}
    {%- endif %}
    max(ingest_batch) over of_key as __cdc_batch, max(last_read_at) over of_key as __cdc_last_read_at
from followed
window
    of_key as (partition by {{ key }}){{ ',' if has_states }}
    {%- if has_states %}
    so_far as (partition by {{ key }} order by __cdc_number desc rows between unbounded preceding and current row)
    {%- endif %}
{%- endmacro %}
