{#
    Of each of `rows` that a key change began, and that lacks a value, the key before it, as
    `previous_key`, and the place where it ended: a delete and a create with one position are a key
    change. Scratch rows, none where there are none. Runs statements.
#}
{% macro _previous_keys(name, table, rows) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set begun -%}
        select distinct
            {{ key }},
            entry.place.source_epoch as fold_bound_epoch,
            entry.place.position as fold_bound_position
        from (select {{ key }}, explode(carried_columns) as entry from {{ rows }})
        where not entry.is_known and entry.place.op = 'c'
    {%- endset -%}
    {%- if not run_query(begun ~ ' limit 1').rows -%}{{ return(none) }}{%- endif -%}
    {%- set of_begun -%}
        left semi join ({{ begun }}) as wanted
            on
                bronze.op = 'd'
                and bronze.source_epoch = wanted.fold_bound_epoch
                and bronze.source_position = wanted.fold_bound_position
    {%- endset -%}
    {%- set query -%}
        select begun.*, ended.previous_key, ended.ended_batch, ended.fold_bound_at
        from ({{ begun }}) as begun
        inner join (
            select
                source_epoch, source_position,
                min({{ key }}) as previous_key, max(ingest_batch) as ended_batch,
                max(changed_at) as fold_bound_at
            from ({{ cdc_lakehouse.change_events(table['bronze_relation'], table, of_begun) }})
            where {{ key }} is not null and {{ cdc_lakehouse.arrived_until_this_run(table['bronze']) }}
            group by source_epoch, source_position
        ) as ended
            on begun.fold_bound_epoch = source_epoch and begun.fold_bound_position = source_position
    {%- endset -%}
    {%- set previous = cdc_lakehouse.scratch_rows(name, query) -%}
    {{ return(previous if run_query('select 1 from ' ~ previous ~ ' limit 1').rows) }}
{%- endmacro %}
