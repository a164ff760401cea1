{#
    Of each key's `placed` versions the newest, the newest of each carried column, and what
    tells whether the row changes and must be replayed, as the CTE `reduced`. A create, a delete
    and a read begin a life: they bring every column, and one that they left out is unknown from
    then on.
#}
{% macro _reduced(table, stored, is_bounded) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
reduced as (
    select
        {{ key }},
        max(named_struct(
            'fold_place', fold_place, 'fold_part', fold_part,
            'delivery', -kafka_offset, 'event_id', event_id,
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
        )) filter (where {{ is_known }} or op in ('c', 'd', 'r')) as `{{ column }}`,
        {%- endfor %}
        {%- if stored %}
        first(struct(
            fold_place as place, fold_first_offset, op, is_deleted, topic_generation, topic_partition,
            kafka_offset, position_before_read, last_read_at, fold_stored_columns as carried_columns
        )) filter (where fold_part = 1) as fold_stored,
        min(fold_place) filter (where fold_part = 0) as fold_lowest_place,
        min(coalesce(fold_place.position, '')) filter (where fold_part = 0) as fold_lowest_position,
        min(source_position) filter (where fold_part = 0 and op = 'd') as fold_lowest_delete,
        max(fold_place) filter (where fold_part = 2) as fold_carried_place,
        max(named_struct('place', fold_place, 'changed_at', changed_at))
            filter (where fold_part = 0 and op = 'r') as fold_read,
        {%- endif %}
        max(ingest_batch) as ingest_batch,
        max(last_read_at) as last_read_at,
        filter(
            array_distinct(flatten(collect_set(fields))),
            name -> not startswith(name, '__')
            and name not in ('{{ table['source_names'].values() | join("', '") }}')
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
)
{%- endmacro %}
