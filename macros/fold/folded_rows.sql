{#
    The newest version of each key, from change events and, with `stored`, the rows that this
    table has of their keys. The stored row is one more event: so first build, increment, full
    refresh and replay are one query. A column's value is the one with the greatest place (see
    _placed).

    Also `fold_unlisted_fields` (of the events, those that no column holds), `fold_replays` (the
    versions do not tell: fold the key again from bronze, see replayed_rows) and, with `stored`,
    `fold_changed` (the row differs from the stored one), `fold_kept` (columns whose value is
    the stored row's), `fold_late` and `fold_deleted` (the lowest points of an event older
    than the stored row and of a delete: other keys' rows may have waited for them).
#}
{% macro folded_rows(events, table, stored=none, is_bounded=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set carried_type = cdc_lakehouse.carried_type() -%}
{%- set kept = dict.fromkeys(table['others'], 'fold_newest.fold_part = 1') -%}
{#- the names of their structs: a column's own could be that of a relation -#}
{%- set structs = {} -%}
{%- for column in table['carried'] -%}
    {%- do structs.update({column: 'fold_value_%s' % loop.index}) -%}
    {%- do kept.update({column: structs[column] ~ '.part > 0'}) -%}
{%- endfor -%}
with
events as (
    {{ events | indent(4) }}
),

{{ cdc_lakehouse._placed(table, stored, is_bounded) }},

{#- the newest version, and the newest of each carried column: a create, a delete and a read begin
    a life, they bring every column, and one that they left out is unknown from then on -#}
reduced as (
    select
        {{ key }},
        max(named_struct(
            'fold_place', fold_place, 'fold_part', fold_part,
            'fold_delivery', -kafka_offset, 'event_id', event_id,
            'fold_first_offset', fold_first_offset, 'unavailable_columns', unavailable_columns,
            {%- for column in table['others'] + cdc_lakehouse.position_columns()[:-2] %}
            '{{ column }}', `{{ column }}`{{ ',' if not loop.last }}
            {%- endfor %}
        )) filter (where fold_part < 2) as fold_newest,
        {%- for column in table['carried'] %}
        {%- set is_known = "not array_contains(unavailable_columns, '" ~ column ~ "')" %}
        max(named_struct(
            'place', fold_place, 'is_known', {{ is_known }},
            'part', fold_part, 'value', `{{ column }}`
        )) filter (where {{ is_known }} or op in ('c', 'd', 'r')) as {{ structs[column] }},
        {%- endfor %}
        {%- if stored %}
        first(struct(
            fold_place as place, fold_first_offset, op, is_deleted, topic_generation, topic_partition,
            kafka_offset, position_before_read, last_read_at, fold_stored_columns as carried_columns
        )) filter (where fold_part = 1) as fold_stored,
        min(fold_place) filter (where fold_part = 0) as fold_lowest_place,
        max(fold_place) filter (where fold_part = 0) as fold_highest_place,
        min(named_struct('epoch', source_epoch, 'position', coalesce(fold_place.position, '')))
            filter (where fold_part = 0) as fold_lowest,
        min(named_struct('epoch', source_epoch, 'position', source_position))
            filter (where fold_part = 0 and op = 'd') as fold_deleted,
        max(fold_place) filter (where fold_part = 2) as fold_carried_place,
        max(named_struct('place', fold_place, 'changed_at', changed_at))
            filter (where fold_part = 0 and op = 'r') as fold_read,
        {%- endif %}
        max(ingest_batch) as ingest_batch,
        max(last_read_at) as last_read_at,
        filter(
            array_distinct(flatten(collect_set(fields))),
            name -> not startswith(name, '__')
            and name not in (
                '{{ (table['source_names'].values() | sum(start=[]) + table['ignored_fields']) | join("', '") }}'
            )
        ) as fold_unlisted_fields
    from {{ 'placed' if not is_bounded else '(
        select *, fold_place > min(fold_place) over (partition by ' ~ key ~ ', source_epoch) as fold_is_later
        from placed
    )' }}
    {%- if is_bounded %}
    where
        {#- a read that was delivered before the delete, and taken after it; of the reads that a
            stream begins with only the time is later #}
        not (op = 'r' and source_position is not null and changed_at >= fold_bound_at and fold_is_later)
        and
        struct(fold_place.source_epoch as epoch, fold_place.position as at, fold_place.read_rank as rank)
        < struct(fold_bound_epoch as epoch, fold_bound_position as at, 0 as rank)
    {%- endif %}
    group by {{ key }}
),

described as (
    select
        *,
        case
            when fold_newest.fold_place.read_rank = 1 then fold_newest.fold_place.position
        end as fold_position_before_read,
        filter(
            cast(array(
                {%- for column in table['carried'] %}
                named_struct(
                    'column_name', '{{ column }}',
                    'is_known', coalesce({{ structs[column] }}.is_known, false),
                    {#- a place of nulls, and not null itself: Spark's interpreted projections fail on
                        a null struct in an array #}
                    'place', coalesce(
                        {{ structs[column] }}.place, from_json('[{"place": {}}]', '{{ carried_type }}')[0].place
                    )
                )
                {{- ',' if not loop.last }}
                {%- endfor %}
            ) as {{ carried_type }}),
            entry -> array_contains(fold_newest.unavailable_columns, entry.column_name)
        ) as carried_columns
    from reduced
)

select
    {%- for column in table['columns'] %}
    {{ '%s.value as `%s`' % (structs[column], column) if column in structs
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
    {{ cdc_lakehouse.columns_where(kept) | indent(4) }} as fold_kept,
    if(fold_lowest_place < fold_stored.place, fold_lowest, null) as fold_late,
    fold_deleted,
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
        {#- a row that a complete snapshot lacked, and a read that brings it after all; one that was
            not known when the snapshot was applied -#}
        or (fold_stored.op = 'r' and fold_stored.is_deleted and fold_read is not null)
        {%- for point in (cdc_lakehouse.complete_snapshots(table['bronze']) if execute else [])[-1:] %}
        or (fold_stored is null and fold_lowest <= {{ cdc_lakehouse.point(*point) }})
        {%- endfor %}
        {#- a row that a truncate ended, and an event before it of another source table -#}
        {%- if execute and cdc_lakehouse.decided_truncates('apply') %}
        or (fold_stored.op = 'd' and fold_stored.kafka_offset is null and fold_highest_place < fold_stored.place)
        {%- endif %}
        {#- reads that lost are not remembered, and what they lost to has moved -#}
        or (
            last_read_at is not null
            and (
                fold_stored.fold_first_offset < fold_stored.kafka_offset
                or (
                    fold_newest.fold_part = 0
                    and fold_newest.op <> 'r'
                    and fold_newest.source_epoch = fold_stored.place.source_epoch
                    and (
                        fold_newest.topic_generation < fold_stored.topic_generation
                        or (
                            fold_newest.topic_generation = fold_stored.topic_generation
                            and fold_newest.topic_partition = fold_stored.topic_partition
                            and fold_newest.fold_first_offset < fold_stored.fold_first_offset
                        )
                    )
                )
                or fold_carried_place > fold_newest.fold_place
            )
        )
        {%- endif %},
        false
    ) as fold_replays
from described
{%- endmacro %}
