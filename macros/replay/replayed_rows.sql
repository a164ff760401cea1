{#
    The rows that the whole history of some keys gives (see _needs_replay), as a subquery, in
    the columns that folded_rows yields without stored rows.

    A row that a key change began lacks the values that its create left out: they are those of
    the former key's row when the delete with the same position ended it. So the former key's
    history before that position is folded too, under the new key; and so on, as the former
    row may itself have begun with a key change. The first of these rows that knows a
    column has its value.

    `keys` is a relation with the key's column. Runs statements.
#}
{% macro replayed_rows(table, keys) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set events = cdc_lakehouse._events_of_keys('events', table, keys) -%}
    {%- set rows = [cdc_lakehouse.scratch_rows(
        'replay_0', cdc_lakehouse.folded_rows(cdc_lakehouse.change_history(events, table, keys), table)
    )] -%}
    {#- a chain of key changes ends where the history does; a bound, lest a build hangs -#}
    {%- set at = namespace(is_done=false) -%}
    {%- for step in range(1, 100) if not at.is_done -%}
        {%- set at.is_done = true -%}
        {%- set begun -%}
            select distinct
                {{ key }},
                entry.place.source_epoch as fold_bound_epoch,
                entry.place.position as fold_bound_position
            from (select {{ key }}, explode(carried_columns) as entry from {{ rows[-1] }})
            where not entry.is_known and entry.place.op = 'c'
        {%- endset -%}
        {%- if run_query(begun ~ ' limit 1').rows -%}
            {%- set former = cdc_lakehouse.scratch_rows(
                'former_' ~ step, cdc_lakehouse._former_keys(table, begun)
            ) -%}
            {%- if run_query('select 1 from ' ~ former ~ ' limit 1').rows -%}
                {%- set wanted = '(select former_key as ' ~ key ~ ' from ' ~ former ~ ')' -%}
                {%- set events = cdc_lakehouse._events_of_keys('events_' ~ step, table, wanted) -%}
                {%- set history -%}
                    select
                        {%- for column in cdc_lakehouse.event_columns(table) if column != 'ingest_batch' %}
                        {{ 'former.' if column == table['key'] else 'history.' }}`{{ column }}`,
                        {%- endfor %}
                        greatest(history.ingest_batch, former.ended_batch) as ingest_batch,
                        former.fold_bound_epoch,
                        former.fold_bound_position
                    from ({{ cdc_lakehouse.change_history(events, table, wanted) }}) as history
                    inner join {{ former }} as former
                        on history.{{ key }} = former.former_key
                {%- endset -%}
                {%- do rows.append(cdc_lakehouse.scratch_rows(
                    'replay_' ~ step, cdc_lakehouse.folded_rows(history, table, is_bounded=true)
                )) -%}
                {%- set at.is_done = false -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return('(' ~ cdc_lakehouse._inherited_rows(table, rows) ~ ')') }}
{%- endmacro %}
