{#
    The rows that the whole history of some keys gives, in the columns that folded_rows yields
    without stored rows; a subquery. `keys` is a relation with the key's column. Runs statements.

    A row that a key change began lacks the values that its create left out: they are those of the
    previous key's row when the delete with the same position ended it. So the previous key's history
    before that position is folded too, under the new key; and so on, as the previous row may itself
    have begun with a key change. The first of these rows that knows a column has its value.
#}
{% macro replayed_rows(table, keys) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set rows = [cdc_lakehouse.scratch_rows(
        'replay_0', cdc_lakehouse.folded_rows(cdc_lakehouse.change_history('events', table, keys), table)
    )] -%}
    {#- a chain of key changes ends where the history does; a bound, lest a build hangs -#}
    {%- set at = namespace(is_done=false) -%}
    {%- for step in range(1, 100) if not at.is_done -%}
        {%- set previous = cdc_lakehouse._previous_keys('previous_' ~ step, table, rows[-1]) -%}
        {%- if previous -%}
            {%- set wanted = '(select previous_key as ' ~ key ~ ' from ' ~ previous ~ ')' -%}
            {%- set history -%}
                select
                    {%- for column in cdc_lakehouse.event_columns(table) if column != 'ingest_batch' %}
                    {{ 'previous.' if column == table['key'] else 'history.' }}`{{ column }}`,
                    {%- endfor %}
                    greatest(history.ingest_batch, previous.ended_batch) as ingest_batch,
                    previous.fold_bound_epoch,
                    previous.fold_bound_position,
                    previous.fold_bound_at
                from ({{ cdc_lakehouse.change_history('events_' ~ step, table, wanted) }}) as history
                inner join {{ previous }} as previous
                    on history.{{ key }} = previous.previous_key
            {%- endset -%}
            {%- do rows.append(cdc_lakehouse.scratch_rows(
                'replay_' ~ step, cdc_lakehouse.folded_rows(history, table, is_bounded=true)
            )) -%}
        {%- else -%}
            {%- set at.is_done = true -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set known = {} -%}
    {%- for column in table['carried'] -%}
        {%- set values -%}
        coalesce(
            {%- for _ in rows %}
            case
                when
                    row_{{ loop.index0 }}.{{ key }} is not null
                    and not exists(
                        row_{{ loop.index0 }}.carried_columns,
                        carried -> carried.column_name = '{{ column }}' and not carried.is_known
                    )
                    then named_struct('value', row_{{ loop.index0 }}.`{{ column }}`)
            end,
            {%- endfor %}
            null
        )
        {%- endset -%}
        {%- do known.update({column: values}) -%}
    {%- endfor -%}
    {%- set inherited -%}
        (
            select
                {%- for column in table['columns'] %}
                {{ known[column] ~ '.value' if column in known else 'row_0.`' ~ column ~ '`' }} as `{{ column }}`,
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
                        'is_known', case entry.column_name
                            {%- for column, values in known.items() %}
                            when '{{ column }}' then {{ values }} is not null
                            {%- endfor %}
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
    {%- endset -%}
    {{ return(inherited) }}
{%- endmacro %}
