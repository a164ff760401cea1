{#
    A gold table: all rows are replaced, in one commit, unless nothing that they are made from has changed; a reader
    sees the old rows or the new ones. A full refresh replaces them in any case, and dbt's `full_refresh: true` with
    every build. Supports `unique_key`, `on_schema_change` (ignore, append_new_columns, fail), contracts, grants, hooks
    and `--empty`, which creates the table and changes no row.

    `state` has the text of the model and of the views that it reads, and of each table the newest commit; of a source
    some more, as its writers may commit in another order than they began. Nothing tells (`is_told`) where a table is not
    Hudi's, the model names none by `ref` or `source`, or a text asks for the time or for chance (docs/models.md).
#}
{% materialization atomic_overwrite, adapter='spark' %}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- do cdc_lakehouse._check_config(existing, none) -%}
    {%- set inputs = cdc_lakehouse.inputs_of(model) -%}
    {%- set others = [] -%}
    {%- for input in inputs if not input['is_bronze'] -%}
        {%- set node = graph.nodes.get(input['id']) -%}
        {%- if not (node.config.file_format == 'hudi' if node else (load_relation(input['relation']) or {}).is_hudi) -%}
            {%- do others.append(input) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set texts = [compiled_code] -%}
    {%- for view in cdc_lakehouse.reads_of(model)['views'] -%}
        {%- set text = run_query('show create table ' ~ view).rows[0]['createtab_stmt'] -%}
        {%- do texts.append(modules.re.sub("'transient_lastDdlTime' = '\\d+'", '', text)) -%}
    {%- endfor -%}
    {%- set volatile = "(?i)\\b(current_(date|timestamp)|localtimestamp)\\b"
        ~ "|\\b(now|curdate|unix_timestamp|rand|randn|random|uuid|shuffle)\\s*\\("
        ~ "|\\b(date|timestamp)\\s*'\\s*(now|today|tomorrow|yesterday)\\b" -%}
    {%- set is_told = inputs and not others and not modules.re.search(volatile, texts | join('\n')) -%}
    {%- set state = [local_md5(texts | join('\n'))] if is_told else [] -%}
    {#- asked before the rows are computed, so that the next run sees a commit of meanwhile -#}
    {%- for input in inputs if is_told -%}
        {%- set limit = 1 if input['id'] in graph.nodes else 10 -%}
        {%- set commits = run_query("call show_commits(table => '%s', limit => %s)" % (input['relation'], limit)) -%}
        {%- do state.append(input['name'] ~ '@' ~ (commits.columns['commit_time'].values() | join(',') or 'empty')) -%}
    {%- endfor -%}
    {%- set is_same = is_told and cdc_lakehouse.stored_table(this)['recorded'].get('inputs') == state | join(' ') -%}
    {{ run_hooks(pre_hooks) }}

    {%- if existing and (flags.EMPTY or (is_same and not should_full_refresh())) -%}
        {%- do store_raw_result('main', message='no input has changed', code='', rows_affected=0) -%}
    {%- else -%}
        {%- set rows = '(' ~ compiled_code ~ '\n)' -%}
        {%- set described = run_query('describe query select * from ' ~ rows).columns -%}
        {%- set types = dict(zip(described['col_name'].values(), described['data_type'].values())) -%}
        {%- do cdc_lakehouse._create_or_alter_table(target_relation, existing, types, rows) -%}
        {%- call statement('main') -%}
            {{ cdc_lakehouse._insert_statement(target_relation, rows, types) }}
        {%- endcall -%}
        {%- if not flags.EMPTY -%}
            {%- do cdc_lakehouse._record({'inputs': state | join(' ')}) -%}
        {%- endif -%}
    {%- endif -%}

    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
