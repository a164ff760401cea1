{#
    The relation to write, for rows that a silver model yields: the rows themselves, or, where
    some keys are not settled, a view that folds those again from their whole history.

    `unsettled` is the condition for such rows. Runs statements.

    Folding again follows key changes back: a create that lacks values takes them from the
    row that the delete at the same LSN ended, whose own create may have lacked them.
#}
{% macro settled_rows(rows, unsettled, columns) -%}
    {%- set events = staging_of(model) -%}
    {%- if not events -%}{{ return(rows) }}{%- endif -%}
    {%- set found = run_query('select 1 from ' ~ rows ~ ' where ' ~ unsettled ~ ' limit 1') -%}
    {%- if not found.rows -%}{{ return(rows) }}{%- endif -%}

    {%- set table = change_table_of(events) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set prefix = this.identifier ~ '__' -%}
    {%- set unsettled_keys = prefix ~ 'unsettled' -%}
    {%- do run_query(create_temporary_view(
        unsettled_keys, 'select distinct ' ~ key ~ ' from ' ~ rows ~ ' where ' ~ unsettled
    )) -%}
    {%- set changes = key_changes(events, table) -%}
    {%- set former_keys = [] if changes is none else
        linked_keys(changes, table, unsettled_keys, 'former_key') -%}
    {%- set keys = prefix ~ 'refolded_keys' -%}
    {%- do run_query(create_temporary_view(
        keys, 'select * from ' ~ ([unsettled_keys] + former_keys) | join(' union select * from ')
    )) -%}
    {%- do create_scratch_view(prefix ~ 'filled', filled_history(events, table, keys)) -%}
    {%- set former = none if changes is none else former_rows(table, prefix ~ 'filled') -%}
    {%- set settled = refolded_rows(
        table, rows, unsettled, columns, prefix ~ 'filled', unsettled_keys, former
    ) -%}
    {%- if reads_increment() -%}
        {%- do create_scratch_view(prefix ~ 'settled', settled) -%}
    {%- else -%}
        {#- one statement reads it, the overwrite -#}
        {%- do run_query(create_temporary_view(prefix ~ 'settled', settled)) -%}
    {%- endif -%}

    {{ return(prefix ~ 'settled') }}
{%- endmacro %}
