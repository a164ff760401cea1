{#
    What the row of each key was after each of its events: one row for each version, in the order of
    the fold (see _placed). `events` is a query of event_columns. Of silver `gone` (see _gone_rows) are
    versions too, of a history `versions` (see _stored_versions), with their places.

    The state of a column that events may leave out is `__cdc_value_N`: the newest struct of place,
    is_known, part and value in the row's incarnation. `__cdc_incarnation` is what that began with: what a create
    left out is the previous key's (see _inherited_values). `__cdc_valid_from` and `__cdc_from_position` are no
    later than those of the versions behind.

    A read of a blocking snapshot may overtake changes (`__cdc_overtakes`): it has seen them, and they
    are delivered behind it. It is no version then, and has no value of a column that these changes
    brought. The reads that a stream begins with are no later than the first change in the log, though
    its time may be lower: they overtook nothing, unless a create says that there was no row.
#}
{% macro row_states(events, table, gone=none, versions=none, is_increment=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set columns = table['columns'] | reject('equalto', table['key']) | list -%}
{%- set is_change = "__cdc_part = 0 and op <> 'r'" -%}
with
events as (
    {{ events | indent(4) }}
),

{{ cdc_lakehouse._placed(table, gone=gone) }},

changes as (
    select
        {{ key }}, __cdc_part, __cdc_place, -kafka_offset as __cdc_delivery, event_id,
        op, is_deleted, source_epoch,
        greatest(source_position, __cdc_place.position) as source_position,
        source_position is not null as __cdc_has_position,
        source_lsn, topic_generation, topic_partition, __cdc_first_offset, changed_at, ingested_at, ingest_batch,
        last_read_at, unavailable_columns, untyped_columns,
        {%- for column in columns %} `{{ column }}`,{% endfor %}
        {#- of nulls, and not null itself: Spark's interpreted projections, as Hudi's merge uses
            them, fail on a null struct in a struct -#}
        named_struct(
            'topic_generation', if(op = 'r' and __cdc_first_offset is not null, topic_generation, null),
            'topic_partition', if(op = 'r' and __cdc_first_offset is not null, topic_partition, null),
            'kafka_offset', if(op = 'r', __cdc_first_offset, null)
        ) as __cdc_read,
        cast(null as struct<
            place: struct<epoch: int, position: string>, ended: struct<epoch: int, position: string>,
            ended_at: timestamp, changed_at: timestamp, is_read: boolean, is_inheriting: boolean,
            number_before: int, inherited: array<struct<source_epoch: int, source_position: string>>
        >) as __cdc_version
    from placed
    {%- if versions %}
    union all
    {{ versions | indent(4) }}
    {%- endif %}
),

followed as (
    select
        *,
        min(changed_at) over from_here_on as __cdc_valid_from,
        if(source_position is null, null, min(
            if(source_position is null, null, named_struct('epoch', source_epoch, 'position', source_position))
        ) over from_here_on).position as __cdc_from_position,
        {%- for column in table['carried'] %}
        min(
            if(
                {{ is_change }} and (op in ('c', 'd') or not array_contains(unavailable_columns, '{{ column }}')),
                changed_at, null
            )
        ) over from_here_on as __cdc_next_{{ loop.index }}_at,
        {%- endfor %}
        coalesce(
            __cdc_part = 0 and op = 'r' and __cdc_has_position
            and min(if({{ is_change }}, changed_at, null)) over from_here_on <= changed_at
            and (
                lead(source_epoch) over backwards = source_epoch
                or last_value(if({{ is_change }}, op, null), true) over from_here_on = 'c'
            ),
            false
        ) as __cdc_overtakes
        {%- if is_increment %},
        max(__cdc_version) over of_key as __cdc_stored,
        max(if(__cdc_part > 0, __cdc_read, null)) over of_key as __cdc_last_read
        {%- endif %}
    from changes
    window
        of_key as (partition by {{ key }}),
        backwards as (
            partition by {{ key }}
            order by __cdc_place desc, __cdc_part asc, __cdc_delivery desc, event_id desc
        ),
        {#- in reverse: Spark recomputes a frame up to the last row for every row -#}
        from_here_on as (
            partition by {{ key }}
            order by __cdc_place desc, __cdc_part asc, __cdc_delivery desc, event_id desc
            rows between unbounded preceding and current row
        )
)

select
    {{ key }}, __cdc_part, __cdc_place, __cdc_delivery, event_id, op, is_deleted, source_epoch, source_position,
    source_lsn, topic_generation, topic_partition, __cdc_first_offset, changed_at, ingested_at,
    unavailable_columns, untyped_columns, __cdc_valid_from, __cdc_from_position, __cdc_overtakes, __cdc_version,
    {%- if is_increment %} __cdc_stored, __cdc_last_read,{% endif %}
    {%- for column in table['others'] %} `{{ column }}`,{% endfor %}
    {%- for column in table['carried'] %}
    {%- set is_known = "not array_contains(unavailable_columns, '" ~ column ~ "')" %}
    max(
        case
            when
                ({{ is_known }} or op in ('c', 'd', 'r'))
                and not (__cdc_overtakes and coalesce(__cdc_next_{{ loop.index }}_at <= changed_at, false))
                then named_struct(
                    'place', __cdc_place, 'is_known', {{ is_known }}, 'part', __cdc_part, 'value', `{{ column }}`
                )
        end
    ) over so_far as __cdc_value_{{ loop.index }},
    {%- endfor %}
    last_value(
        case
            when op in ('c', 'd', 'r') and not __cdc_overtakes then named_struct(
                'op', op, 'source_epoch', source_epoch, 'source_position', source_position
            )
        end, true
    ) over so_far as __cdc_incarnation,
    lead(true) over forwards is null as __cdc_is_last,
    max(if(op = 'r' and __cdc_has_position, changed_at, null)) over of_key as __cdc_read_at,
    max(__cdc_read) over of_key as __cdc_read,
    max(ingest_batch) over of_key as ingest_batch,
    max(last_read_at) over of_key as last_read_at,
    cast(null as array<string>) as fields
from followed
window
    of_key as (partition by {{ key }}),
    forwards as (
        partition by {{ key }} order by __cdc_place, __cdc_part desc, __cdc_delivery, event_id
    ),
    so_far as (
        partition by {{ key }} order by __cdc_place, __cdc_part desc, __cdc_delivery, event_id
        rows between unbounded preceding and current row
    )
{%- endmacro %}
