{# The groups (`recompute_by`) that changed rows of the inputs are in, or were in, and what the next run needs. #}
{% macro _changed_groups(inputs, is_asked) -%}
    {%- set recorded, changed, counts, lost, by = {}, [], [], [], config.get('recompute_by') -%}
    {%- set known = fromjson(cdc_lakehouse.stored_table(this)['recorded'].get('groups', '{}')) -%}
    {%- for input in inputs -%}
        {%- set name, newest, relation = input['name'], input['commits'] | first | default(''), input['relation'] -%}
        {%- set before, rows = known.get(name, ['', 0]) -%}
        {%- do recorded.update({name: known[name]}) if newest and newest == before -%}
        {%- if not newest or newest != before -%}
            {%- set past, query = [this.schema, this.identifier, name] | join('__'), "select '" ~ name ~ "' as __cdc_input, `" ~ by ~ '`, {is_now} as __cdc_is_now, _hoodie_record_key as __cdc_key from ' -%}
            {%- do changed.append({
                'name': name, 'newest': newest, 'relation': relation, 'before': before, 'rows': rows, 'past': past,
                'is_told': input['id'] in graph.nodes and before in input['commits'] and by in cdc_lakehouse.stored_table(relation)['columns'],
                'now': query.replace('{is_now}', 'true') ~ relation ~ " where _hoodie_commit_time > '" ~ before ~ "'",
                'old': query.replace('{is_now}', 'false') ~ past ~ " left semi join {now} as changed on _hoodie_record_key = changed.__cdc_key and changed.__cdc_input = '" ~ name ~ "'"
            }) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set is_told = is_asked and changed and not changed | rejectattr('is_told') | list -%}
    {%- for input in changed if is_told -%}
        {#- Hudi's `timestamp as of` is of queries, not of statements that write -#}
        {%- set location = modules.re.findall('(?m)^Location: (.*)$', load_relation(input['relation']).information) | first -%}
        {%- do cdc_lakehouse.run_statement("create or replace temporary view %s using hudi options ('path' '%s', 'as.of.instant' '%s')"
            % (input['past'], location, input['before'])) -%}
    {%- endfor -%}
    {%- set now = cdc_lakehouse.scratch_rows('now', changed | join(' union all ', attribute='now')) if is_told -%} {#- stored, so that Spark broadcasts them where they are few -#}
    {%- set groups = cdc_lakehouse.scratch_rows('groups', ('select * from {now} union all ' ~ changed | join(' union all ', attribute='old')).replace('{now}', now)) if is_told -%}
    {%- for input in changed -%}
        {%- do counts.append("select '%s' as name, (select count(*) from %s) as rows" % (input['name'], input['relation']) ~ (
            ", (select count(*) from %s) as past, (select count_if(__cdc_is_now) - count_if(not __cdc_is_now) from %s where __cdc_input = '%s') as inserted"
            % (input['past'], groups, input['name']) if is_told else '')) -%}
    {%- endfor -%}
    {%- for row in (run_query(counts | join(' union all ')).rows if counts else []) -%}
        {%- set input = changed | selectattr('name', 'equalto', row['name']) | first -%}
        {%- do recorded.update({row['name']: [input['newest'], row['rows'] | int]}) -%}
        {#- rows of before are lost, to Hudi's cleaning or an overwrite, or were deleted -#}
        {%- do lost.append(row) if is_told and (row['past'] != input['rows'] or row['rows'] - row['past'] != row['inserted']) -%}
    {%- endfor -%}
    {{ return({'relation': groups if is_told and not lost else none, 'recorded': {'groups': tojson(recorded)}}) }}
{%- endmacro %}
