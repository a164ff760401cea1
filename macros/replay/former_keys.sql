{#
    Of each row that a key change began, the key before it, as `former_key`, and the place where
    it ended (see replayed_rows). A delete and a create with one position are a key change.
#}
{% macro former_keys(events, table, rows) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
select
    begun.{{ key }},
    begun.fold_bound_epoch,
    begun.fold_bound_position,
    min(ended.{{ key }}) as former_key,
    max(ended.ingest_batch) as ended_batch
from (
    select distinct
        {{ key }},
        entry.place.source_epoch as fold_bound_epoch,
        entry.place.position as fold_bound_position
    from (select {{ key }}, explode(carried_columns) as entry from {{ rows }} where fold_replays)
    where not entry.is_known and entry.place.op = 'c'
) as begun
inner join {{ events }} as ended
    on
        begun.fold_bound_epoch = ended.source_epoch
        and begun.fold_bound_position = ended.source_position
where
    ended.op = 'd'
    and ended.{{ key }} is not null
    and {{ cdc_lakehouse.arrived_until_this_run(table['bronze']) }}
group by begun.{{ key }}, begun.fold_bound_epoch, begun.fold_bound_position
{%- endmacro %}
