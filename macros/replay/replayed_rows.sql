{#
    The rows that the whole history of some keys gives, in the columns that folded_rows yields
    without stored rows; a subquery. `keys` is a relation with the key's column. Runs statements.

    A delete and a create with one position are a key change. The values that the create left out are
    those of the previous key's row when the delete ended it. So the previous key's history before
    that position is folded too, under the new key; and so on, as the previous row may itself have
    begun with a key change. The first of these rows that knows a column has its value.
#}
{% macro replayed_rows(table, keys) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set rows = [cdc_lakehouse.scratch_rows(
        'replay_0', cdc_lakehouse.folded_rows(cdc_lakehouse.change_history('events', table, keys), table)
    )] -%}
    {#- a chain of key changes ends where the history does; a bound, lest a build hangs -#}
    {%- for step in range(1, 100) if rows | length == step -%}
        {%- set begun -%}
            select distinct
                {{ key }},
                entry.place.source_epoch as fold_bound_epoch,
                entry.place.position as fold_bound_position
            from (select {{ key }}, explode(carried_columns) as entry from {{ rows[-1] }})
            where not entry.is_known and entry.place.op = 'c'
        {%- endset -%}
        {%- set of_begun -%}
            left semi join ({{ begun }}) as wanted
                on
                    bronze.op = 'd'
                    and bronze.source_epoch = wanted.fold_bound_epoch
                    and bronze.source_position = wanted.fold_bound_position
        {%- endset -%}
        {%- set query -%}
            select
                begun.{{ key }}, fold_bound_epoch, fold_bound_position,
                min(ended.{{ key }}) as fold_previous_key, max(ended.ingest_batch) as fold_ended_batch,
                max(ended.changed_at) as fold_bound_at
            from ({{ begun }}) as begun
            inner join ({{ cdc_lakehouse.change_events(table['bronze_relation'], table, of_begun) }}) as ended
                on fold_bound_epoch = ended.source_epoch and fold_bound_position = ended.source_position
            where ended.{{ key }} is not null and {{ cdc_lakehouse.arrived_until_this_run(table['bronze']) }}
            group by all
        {%- endset -%}
        {%- set previous = cdc_lakehouse.scratch_rows('previous_' ~ step, query)
            if run_query(begun ~ ' limit 1').rows else none -%}
        {%- if previous and run_query('select 1 from ' ~ previous ~ ' limit 1').rows -%}
            {%- set wanted = '(select fold_previous_key as ' ~ key ~ ' from ' ~ previous ~ ')' -%}
            {%- set history -%}
                select
                    {%- for column in cdc_lakehouse.event_columns(table) if column != 'ingest_batch' %}
                    {{ 'previous.' if column == table['key'] else 'history.' }}`{{ column }}`,
                    {%- endfor %}
                    greatest(history.ingest_batch, previous.fold_ended_batch) as ingest_batch,
                    previous.fold_bound_epoch,
                    previous.fold_bound_position,
                    previous.fold_bound_at
                from ({{ cdc_lakehouse.change_history('events_' ~ step, table, wanted) }}) as history
                inner join {{ previous }} as previous
                    on history.{{ key }} = previous.fold_previous_key
            {%- endset -%}
            {%- do rows.append(cdc_lakehouse.scratch_rows(
                'replay_' ~ step, cdc_lakehouse.folded_rows(history, table, is_bounded=true)
            )) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set known = {} -%}
    {%- for column in table['carried'] -%}
        {%- for _ in rows -%}
            {%- set is_known -%}
            row_{{ loop.index0 }}.{{ key }} is not null and not exists(
                row_{{ loop.index0 }}.carried_columns,
                carried -> carried.column_name = '{{ column }}' and not carried.is_known
            )
            {%- endset -%}
            {%- do known.setdefault(column, []).append(is_known) -%}
        {%- endfor -%}
    {%- endfor -%}
    (
        select
            {%- for column in table['columns'] %}
            case
                {%- for is_known in known.get(column, ['true']) %}
                when {{ is_known }} then row_{{ loop.index0 }}.`{{ column }}`
                {%- endfor %}
            end as `{{ column }}`,
            {%- endfor %}
            {%- for column in cdc_lakehouse.position_columns() if column != 'ingest_batch' %}
            row_0.{{ column }},
            {%- endfor %}
            greatest(
                {%- for _ in rows %}row_{{ loop.index0 }}.ingest_batch, {% endfor %}null
            ) as ingest_batch,
            transform(
                row_0.carried_columns,
                entry -> named_struct(
                    'column_name', entry.column_name,
                    'is_known', case
                        {%- for column, conditions in known.items() %}
                        when entry.column_name = '{{ column }}' then {{ conditions | join(' or ') }}
                        {%- endfor %}
                        {#- a table need not have a column that can be left out #}
                        when true then false
                    end,
                    'place', entry.place
                )
            ) as carried_columns
        from {{ rows[0] }} as row_0
        {%- for relation in rows[1:] %}
        left join {{ relation }} as row_{{ loop.index }}
            on row_0.{{ key }} = row_{{ loop.index }}.{{ key }}
        {%- endfor %}
    )
{%- endmacro %}
