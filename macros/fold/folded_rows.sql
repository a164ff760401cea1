{#
    The newest version of each key, from change events and, with `stored`, the rows that this
    table has of their keys. The stored row is one more event: so first build, increment, full
    refresh and replay are one query. A column's value is the one with the greatest place (see
    _placed).

    Also `fold_unlisted_fields` (of the events, those that no column holds), `fold_replays` (the
    versions do not tell: fold the key again from bronze, see replayed_rows) and, with `stored`,
    `fold_changed` (the row differs from the stored one), `fold_kept` (columns whose value is
    the stored row's), `fold_late` and `fold_deleted` (the lowest positions of an event older
    than the stored row and of a delete: other keys' rows may have waited for them).
#}
{% macro folded_rows(events, table, stored=none, is_bounded=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set carried_type = cdc_lakehouse.carried_type() -%}
with
events as (
    {{ events | indent(4) }}
),

{{ cdc_lakehouse._placed(table, stored, is_bounded) }},

{{ cdc_lakehouse._reduced(table, stored, is_bounded) }},

described as (
    select
        *,
        case
            when fold_newest.fold_place.read_rank = 1 then fold_newest.fold_place.position
        end as fold_position_before_read,
        filter(
            cast(array(
                {%- for column in table['carried'] %}
                case
                    when array_contains(fold_newest.unavailable_columns, '{{ column }}')
                        then named_struct(
                            'column_name', '{{ column }}',
                            'is_known', coalesce(`{{ column }}`.is_known, false),
                            {#- a place of nulls, and not null itself: Spark's interpreted
                            projections fail on a null struct in an array #}
                            'place', coalesce(
                                `{{ column }}`.place,
                                from_json('[{"place": {}}]', '{{ carried_type }}')[0].place
                            )
                        )
                end
                {{- ',' if not loop.last }}
                {%- endfor %}
            ) as {{ carried_type }}),
            entry -> entry is not null
        ) as carried_columns
    from reduced
)

select
    {%- for column in table['columns'] %}
    {{ '`%s`.value as `%s`' % (column, column) if column in table['carried']
        else ('' if column == table['key'] else 'fold_newest.') ~ '`' ~ column ~ '`' }},
    {%- endfor %}
    fold_newest.op, fold_newest.is_deleted, fold_newest.source_epoch,
    greatest(fold_newest.source_position, fold_newest.fold_place.position) as source_position,
    fold_newest.source_lsn, fold_newest.topic_generation, fold_newest.topic_partition,
    fold_newest.fold_first_offset as kafka_offset,
    fold_newest.changed_at, fold_newest.ingested_at, ingest_batch, fold_newest.untyped_columns,
    fold_position_before_read as position_before_read, last_read_at, carried_columns,
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
            {%- for column in table['others'] %} if(fold_newest.fold_part = 1, '{{ column }}', null),{% endfor %}
            {%- for column in table['carried'] %} if(`{{ column }}`.part > 0, '{{ column }}', null),{% endfor %}
            null
        ),
        name -> name is not null
    ) as fold_kept,
    if(fold_lowest_place < fold_stored.place, fold_lowest_position, null) as fold_late,
    fold_lowest_delete as fold_deleted,
    {%- endif %}
    fold_unlisted_fields,
    coalesce(
        {#- a create after a key change: what it left out is in another key's row -#}
        exists(
            carried_columns,
            entry -> entry.place.op = 'c'
            and not entry.is_known
            {%- if stored %}
            and not coalesce(array_contains(fold_stored.carried_columns, entry), false)
            {%- endif %}
        )
        {%- if stored %}
        {#- a read that was seen before, and lost: its first delivery may stand elsewhere -#}
        or (
            fold_read.place > fold_stored.place
            and fold_read.place.kafka_offset is not null
            and coalesce(fold_read.changed_at <= fold_stored.last_read_at, fold_stored.last_read_at is not null)
        )
        {#- a row that a complete snapshot lacked, and a read that brings it after all -#}
        or (fold_stored.op = 'r' and fold_stored.is_deleted and fold_read is not null)
        {#- reads that lost are not remembered, and what they lost to has moved -#}
        or (
            last_read_at is not null
            and (
                fold_stored.fold_first_offset < fold_stored.kafka_offset
                or (
                    fold_newest.fold_part = 0
                    and fold_newest.op <> 'r'
                    and fold_newest.source_epoch = fold_stored.place.source_epoch
                    and fold_newest.topic_generation = fold_stored.topic_generation
                    and fold_newest.topic_partition = fold_stored.topic_partition
                    and fold_newest.fold_first_offset < fold_stored.fold_first_offset
                )
                or fold_carried_place > fold_newest.fold_place
            )
        )
        {%- endif %},
        false
    ) as fold_replays
from described
{%- endmacro %}
