{#
    Of each row that a key change began the key before it, as `former_key`, and the place where
    it ended (see replayed_rows). A delete and a create with one position are a key change.
    `begun` is a query of key and place.
#}
{% macro _former_keys(table, begun) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set of_begun -%}
    left semi join ({{ begun }}) as wanted
        on
            bronze.op = 'd'
            and bronze.source_epoch = wanted.fold_bound_epoch
            and bronze.source_position = wanted.fold_bound_position
{%- endset -%}
select
    begun.{{ key }},
    begun.fold_bound_epoch,
    begun.fold_bound_position,
    min(ended.{{ key }}) as former_key,
    max(ended.ingest_batch) as ended_batch
from ({{ begun }}) as begun
inner join ({{ cdc_lakehouse.change_events(table['bronze_relation'], table, of_begun) }}) as ended
    on
        begun.fold_bound_epoch = ended.source_epoch
        and begun.fold_bound_position = ended.source_position
where ended.{{ key }} is not null and {{ cdc_lakehouse.arrived_until_this_run(table['bronze']) }}
group by begun.{{ key }}, begun.fold_bound_epoch, begun.fold_bound_position
{%- endmacro %}
