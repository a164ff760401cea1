{#
    A gold table: all rows are replaced, in one commit, unless nothing that they are made from has
    changed (see _state_of_inputs); a reader sees the old rows or the new ones. A full refresh
    replaces them in any case, and dbt's `full_refresh: true` with every build.

    Supports `unique_key`, `on_schema_change` (ignore, append_new_columns, fail), contracts,
    grants, hooks and `--empty`, which creates the table and changes no row.
#}
{% materialization atomic_overwrite, adapter='spark' %}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- do cdc_lakehouse._check_config(existing, none) -%}
    {#- asked before the rows are computed, so that the next run sees a commit of meanwhile -#}
    {%- set state = cdc_lakehouse._state_of_inputs() -%}
    {{ run_hooks(pre_hooks) }}

    {%- if existing and (
        flags.EMPTY
        or (
            not should_full_refresh() and state != 'unknown'
            and cdc_lakehouse.progress(this).get('inputs') == state
        )
    ) -%}
        {%- do store_raw_result('main', message='no input has changed', code='', rows_affected=0) -%}
    {%- else -%}
        {%- set rows = '(' ~ compiled_code ~ '\n)' -%}
        {%- set described = run_query('describe query select * from ' ~ rows).columns -%}
        {%- set types = dict(zip(described[0].values(), described[1].values())) -%}
        {%- set record_key = cdc_lakehouse._record_key(types, none) -%}
        {%- do cdc_lakehouse._create_or_alter_table(target_relation, existing, types, rows, record_key) -%}
        {%- call statement('main') -%}
            {{ cdc_lakehouse._insert_statement(target_relation, rows, types, record_key) }}
        {%- endcall -%}
        {%- if not flags.EMPTY -%}{%- do cdc_lakehouse._record_progress({'inputs': state}, has_read=false) -%}{%- endif -%}
    {%- endif -%}

    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
