{#
    The rows that the whole history of some keys gives (see needs_replay), as a subquery, in
    the columns that folded_rows yields without stored rows.

    A row that a key change began lacks the values that its create left out: they are those of
    the former key's row when the delete with the same position ended it. So the former key's
    history before that position is folded too, under the new key; and so on, as the former
    row may itself have begun with a key change. The first of these rows that knows a
    column has its value.

    `keys` is a relation with the key's column. Runs statements.
#}
{% macro replayed_rows(events, table, keys) -%}
    {%- set rows = [cdc_lakehouse.scratch_rows(
        'replay_0', cdc_lakehouse.folded_rows(cdc_lakehouse.change_history(events, table, keys), table)
    )] -%}
    {#- a chain of key changes ends where the history does; a bound, lest a build hangs -#}
    {%- set at = namespace(is_done=false) -%}
    {%- for step in range(1, 100) if not at.is_done -%}
        {%- set at.is_done = true -%}
        {%- if run_query('select 1 from ' ~ rows[-1] ~ ' where fold_replays limit 1').rows -%}
            {%- set former = cdc_lakehouse.scratch_rows(
                'former_' ~ step, cdc_lakehouse.former_keys(events, table, rows[-1])
            ) -%}
            {%- if run_query('select 1 from ' ~ former ~ ' limit 1').rows -%}
                {%- do rows.append(cdc_lakehouse.scratch_rows(
                    'replay_' ~ step,
                    cdc_lakehouse.folded_rows(
                        cdc_lakehouse.former_history(events, table, former), table, is_bounded=true
                    )
                )) -%}
                {%- set at.is_done = false -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return('(' ~ cdc_lakehouse.inherited_rows(table, rows) ~ ')') }}
{%- endmacro %}
