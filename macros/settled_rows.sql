{#
    The relation to write, for rows that a silver model yields: the rows themselves, or, where
    some keys are not settled, a view that folds those again from their whole history.

    `unsettled` is the condition for such rows. Runs statements.

    Folding again follows key changes back: a create that lacks values takes them from the
    row that the delete at the same LSN ended, whose own create may have lacked them. Each
    step finds the keys that the one before led to, until there are none.
#}
{% macro settled_rows(rows, unsettled, columns) -%}
    {%- set events = staging_of(model) -%}
    {%- if not events -%}{{ return(rows) }}{%- endif -%}
    {%- set found = run_query('select count(*) from ' ~ rows ~ ' where ' ~ unsettled) -%}
    {%- if found.rows[0][0] == 0 -%}{{ return(rows) }}{%- endif -%}

    {%- set table = change_table_of(events) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set prefix = this.identifier ~ '__' -%}
    {%- set known_keys = [prefix ~ 'keys_0'] -%}
    {%- set histories = [] -%}
    {%- set at = namespace(step=0, is_done=false) -%}
    {%- do run_query(create_temporary_view(
        known_keys[0], 'select distinct ' ~ key ~ ' from ' ~ rows ~ ' where ' ~ unsettled
    )) -%}
    {#- a chain ends where the history does; a loop without a bound could hang a build -#}
    {%- for step in range(1, 100) if not at.is_done -%}
        {%- do histories.append(prefix ~ 'history_' ~ step) -%}
        {%- do create_scratch_view(
            histories[-1], change_history(events, table, known_keys[-1])
        ) -%}
        {%- set next_keys = prefix ~ 'keys_' ~ step -%}
        {%- do create_scratch_view(
            next_keys, former_keys(events, table, histories[-1], known_keys)
        ) -%}
        {%- do known_keys.append(next_keys) -%}
        {%- if run_query('select count(*) from ' ~ next_keys).rows[0][0] == 0 -%}
            {%- set at.is_done = true -%}
        {%- endif -%}
    {%- endfor -%}

    {%- do create_scratch_view(prefix ~ 'filled', filled_history(table, histories)) -%}
    {%- do run_query(create_temporary_view(
        prefix ~ 'former_0', former_values(table, prefix ~ 'filled')
    )) -%}
    {#- a chain may pass a key more than once; each step doubles how far back it looks -#}
    {%- set at.is_done = false -%}
    {%- for step in range(1, 20) if not at.is_done -%}
        {%- set former = prefix ~ 'former_' ~ at.step -%}
        {%- set open = run_query(
            'select count(*) from ' ~ former ~ ' where former_life_start is not null'
        ) -%}
        {%- if open.rows[0][0] == 0 -%}
            {%- set at.is_done = true -%}
        {%- else -%}
            {%- do create_scratch_view(
                prefix ~ 'former_' ~ step, handed_over_values(table, former)
            ) -%}
            {%- set at.step = step -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set former = prefix ~ 'former_' ~ at.step -%}
    {%- set settled = refolded_rows(
        table, rows, unsettled, columns, prefix ~ 'filled', known_keys[0], former
    ) -%}
    {%- if reads_increment() -%}
        {%- do create_scratch_view(prefix ~ 'settled', settled) -%}
    {%- else -%}
        {#- one statement reads it, the overwrite -#}
        {%- do run_query(create_temporary_view(prefix ~ 'settled', settled)) -%}
    {%- endif -%}

    {{ return(prefix ~ 'settled') }}
{%- endmacro %}
