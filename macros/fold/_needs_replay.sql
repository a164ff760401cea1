{#
    True for a key whose row does not tell what the newest version is, so that its events are
    folded again from bronze (see replayed_rows). Used in folded_rows.
#}
{% macro _needs_replay(stored) -%}
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
{%- endif %}
{%- endmacro %}
