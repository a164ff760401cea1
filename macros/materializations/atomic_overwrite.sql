{# A gold table: all rows are replaced in one commit, or the groups that changed. #}
{% materialization atomic_overwrite, adapter='spark' %}
    {%- set target_relation, existing = this.incorporate(type='table'), load_relation(this) -%}
    {%- do cdc_lakehouse._check_config(existing, none) -%}
    {%- set inputs, by, others, texts = cdc_lakehouse.inputs_of(model), config.get('recompute_by'), [], [compiled_code] -%}
    {%- for input in inputs if not input['is_bronze'] -%}
        {%- set node = graph.nodes.get(input['id']) -%}
        {%- set is_hudi = node.config.file_format == 'hudi' if node else (load_relation(input['relation']) or {}).is_hudi -%}
        {%- do others.append(input) if not is_hudi -%}
    {%- endfor -%}
    {%- for view in cdc_lakehouse.reads_of(model)['views'] -%}
        {%- set text = run_query('show create table ' ~ view).rows[0]['createtab_stmt'] -%}
        {%- do texts.append(modules.re.sub("'transient_lastDdlTime' = '\\d+'", '', text)) -%}
    {%- endfor -%}
    {%- set volatile = "(?i)\\b(current_(date|timestamp)|localtimestamp)\\b"
        ~ "|\\b(now|curdate|unix_timestamp|rand|randn|random|uuid|shuffle)\\s*\\("
        ~ "|\\b(date|timestamp)\\s*'\\s*(now|today|tomorrow|yesterday)\\b" -%}
    {%- set is_told = inputs and not others and not modules.re.search(volatile, texts | join('\n')) -%}
    {%- set state = [local_md5(texts | join('\n'))] if is_told else [] -%}
    {#- asked before the rows are computed, so that the next run sees a commit of meanwhile; to recompute groups all that
        can still be read -#}
    {%- for input in inputs if is_told -%}
        {%- set count = 1 if input['id'] in graph.nodes else 10 -%}
        {%- set kept = modules.re.findall('commits\\.retained=(\\d+)', (load_relation(input['relation']) or {}).information or '') if by -%}
        {%- set commits = run_query("call show_commits(table => '%s', limit => %s)" % (input['relation'], [kept | first | default(count) | int, count] | max)) -%}
        {%- do input.update(commits=commits.columns['commit_time'].values() | list) -%}
        {%- do state.append(input['name'] ~ '@' ~ (input['commits'][:count] | join(',') or 'empty')) -%}
    {%- endfor -%}
    {%- set recorded = cdc_lakehouse.stored_table(this)['recorded'].get('inputs', '') -%}
    {{ run_hooks(pre_hooks) }}
    {%- if existing and (flags.EMPTY or (is_told and recorded == state | join(' ') and not should_full_refresh())) -%}
        {%- do store_raw_result('main', message='no input has changed', code='', rows_affected=0) -%}
    {%- else -%}
        {%- set made, is_same = '(' ~ compiled_code ~ '\n)', is_told and existing and recorded.startswith(state[0]) and not should_full_refresh() -%}
        {%- set groups = cdc_lakehouse._changed_groups(inputs, is_same) if by and is_told and not flags.EMPTY else {} -%}
        {%- set changed = "left semi join " ~ groups['relation'] ~ " as changed on {rows}.`" ~ by ~ "` <=> changed.`" ~ by ~ "`" -%}
        {%- if groups['relation'] -%}
            {%- set only = namespace(text=compiled_code) -%}
            {%- for input in inputs if by in cdc_lakehouse.stored_table(input['relation'])['columns'] -%}
                {#- where it is named, as Spark takes a condition down to one side of a join alone; not where a column is named by it -#}
                {%- set name = modules.re.escape(input['relation'] | string) -%}
                {%- set place = '(?i)\\b(from|join)(\\s+)' ~ name ~ ('(?!)' if modules.re.search(name ~ '\\s*\\.', compiled_code) else '') -%}
                {%- set rows = '\\1\\2(select held.* from %s as held ' % input['relation'] ~ changed.replace('{rows}', 'held') ~ ')' -%}
                {%- set only.text = modules.re.sub(place ~ '(?=\\s+as\\b)', rows, only.text) -%}
                {%- set only.text = modules.re.sub(place ~ '(?=\\s*([),]|$|(where|join|left|right|full|inner|cross|lateral|group|order|union)\\b))',
                    rows ~ ' as `' ~ input['relation'].identifier ~ '`', only.text) -%}
            {%- endfor -%}
            {%- set made = cdc_lakehouse.scratch_rows('rows', 'select made.* from (' ~ only.text ~ '\n) as made ' ~ changed.replace('{rows}', 'made')) -%}
        {%- endif -%}
        {%- set described = run_query('describe query select * from ' ~ made).columns -%}
        {%- set types = dict(zip(described['col_name'].values(), described['data_type'].values())) -%}
        {%- set columns = cdc_lakehouse._create_or_alter_table(target_relation, existing, types, made) | join('`, `') -%}
        {#- the key, and what a property may name to order rows by, of the rows to delete -#}
        {%- set kept = modules.re.escape(([config.get('unique_key')] + (config.get('tblproperties') or {}).values() | map('string') | list) | join(',')).replace(',', '|') -%}
        {%- set values = modules.re.sub('(?i)null as (`(?:' ~ kept ~ ')`)', 'held.\\1', 'null as `' ~ columns.replace('`, `', '`, null as `') ~ '`') -%}
        {%- set gone = 'select %s, true from %s as held %s left anti join %s as made using (`%s`)' % (values, this, changed.replace('{rows}', 'held'), made, config.get('unique_key')) -%}
        {%- set merged = '(select `' ~ columns ~ '`, false as __cdc_surplus from ' ~ made ~ ' union all ' ~ gone ~ ')' -%}
        {%- call statement('main') -%}
            {{ cdc_lakehouse._insert_statement(target_relation, merged if groups['relation'] else made, types,
                overwrite=not groups['relation'], has_surplus=groups['relation']) }}
        {%- endcall -%}
        {%- for input in inputs if groups['recorded'] -%}
            {%- set newest = run_query("call show_commits(table => '%s', limit => 1)" % input['relation']).columns['commit_time'].values() -%}
            {#- another build's, of which the rows may have something, or not -#}
            {%- do groups['recorded'].update(groups='{}') if newest | list != input['commits'][:1] -%}
        {%- endfor -%}
        {%- do cdc_lakehouse._record(dict(groups['recorded'] or {}, inputs=state | join(' '))) if not flags.EMPTY -%}
    {%- endif -%}
    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
