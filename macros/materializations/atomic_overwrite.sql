{#
    A gold table: all rows are replaced, in one commit, whenever an input has changed or the
    model's own text; so a reader sees the old rows or the new ones. Otherwise it is left
    alone. A full refresh replaces them whether or not anything changed.

    Supports `unique_key`, `on_schema_change` (ignore, append_new_columns, fail), contracts,
    grants, hooks and `--empty`, which creates the table and changes no row.
#}
{% materialization atomic_overwrite, adapter='spark' %}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- do cdc_lakehouse._check_config(existing) -%}
    {#- Equal states give equal rows: the newest commit of each input, and the model's text. Asked
        before the rows are computed, so that the next run sees a commit of meanwhile. -#}
    {%- set state = [local_md5(compiled_code)] -%}
    {%- for input in cdc_lakehouse.inputs_of(model) -%}
        {%- set commits = run_query(
            "call show_commits(table => '" ~ input['relation'] ~ "', limit => 1)"
        ).rows -%}
        {%- do state.append(input['name'] ~ '@' ~ (commits[0][0] if commits else 'empty')) -%}
    {%- endfor -%}
    {%- set state = state | join(' ') -%}
    {{ run_hooks(pre_hooks) }}

    {%- if existing and (
        flags.EMPTY
        or (not should_full_refresh() and cdc_lakehouse.progress(this).get('inputs') == state)
    ) -%}
        {%- do store_raw_result(
            'main', message='no input has changed', code='', rows_affected=0
        ) -%}
    {%- else -%}
        {%- set rows = '(' ~ compiled_code ~ ')' -%}
        {%- set types = {} -%}
        {%- for row in run_query('describe query select * from ' ~ rows) -%}
            {%- do types.update({row[0]: row[1]}) -%}
        {%- endfor -%}
        {%- do cdc_lakehouse._create_or_alter_table(target_relation, existing, types, rows) -%}
        {%- call statement('main') -%}
            {{ cdc_lakehouse._insert_statement(target_relation, rows, types) }}
        {%- endcall -%}
        {%- if not flags.EMPTY -%}{%- do cdc_lakehouse.record(this, {'inputs': state}) -%}{%- endif -%}
    {%- endif -%}

    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
