{# Erase a key of Kafka, with the files that had its rows (docs/runbook.md). #}
{% macro erase_key(table, key) -%}
    {%- set sources = cdc_lakehouse.bronze_sources() -%}
    {%- do exceptions.raise_compiler_error("erase_key: '%s' is no bronze table; known: %s" % (table, sources | join(', ')))
        if table not in sources -%}
    {%- set bronze, quarantine = sources[table], sources.get('rejected_events') -%}
    {%- set literal = "'" ~ key | replace('\\', '\\\\') | replace("'", "\\'") ~ "'" -%}
    {%- set events, rejections, erased = ['select event_id from %s where key = %s' % (bronze, literal)], [], [] -%}
    {%- set models = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model') | list -%}
    {%- for staging in models if ['bronze', table] in staging.sources and 'columns' in staging.config.meta -%}
        {%- set view = api.Relation.create(schema=staging.schema, identifier=staging.alias) -%}
        {%- set declared = cdc_lakehouse.change_table(view) -%}
        {%- set column = declared['key'] -%}
        {%- set text = 'null' if declared['key_columns']
            else cdc_lakehouse.key_value(declared, has_row=false, type='string') -%}
        {#- the key and, of one column, the reason where it is none, as change_events has them; where Kafka's key
            has no such column they are null, in a text 'None', and no hexadecimal digits are -#}
        {%- set value, reason = run_query(
            "select hex(cast(%s as string)), hex(concat('%s: \\'', left(%s, 60), '\\' is no %s'))"
            " from (select %s as key)" % (
                cdc_lakehouse.key_value(declared, has_row=false), column, text, declared['columns'][column], literal
            )).rows[0] -%}
        {%- set is_of_key = "hex(cast(`%s` as string)) = '%s'" % (column, value) -%}
        {%- do events.append("select event_id from %s where %s or hex(rejection) = '%s'" % (view, is_of_key, reason))
            if load_relation(view) -%}
        {%- set name = staging.alias.removeprefix('stg_') -%}
        {%- do rejections.append("table_name = '%s' and hex(reason) = '%s'" % (name, reason)) -%}
        {%- for node in models if cdc_lakehouse.is_history(node) and staging.unique_id in node.depends_on.nodes -%}
            {%- do erased.append((node.schema ~ '.' ~ node.alias, is_of_key, 'versions')) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set is_erased = 'event_id in (%s)' % events | join(' union all ') -%}
    {%- for node in models | selectattr('name', 'equalto', 'rejected_rows') -%}
        {%- do erased.append((node.schema ~ '.' ~ node.alias, ([is_erased] + rejections) | join(' or '), 'rows')) -%}
    {%- endfor -%}
    {%- do erased.append((quarantine, 'key = %s and topic in (select topic from %s)' % (literal, bronze), 'records'))
        if quarantine -%}
    {%- for name, condition, rows in erased + [(bronze, is_erased, 'events')] -%}
        {%- set schema, _, identifier = name.partition('.') -%}
        {%- if load_relation(api.Relation.create(schema=schema, identifier=identifier)) -%}
            {#- a session that lives on remembers the files that it has seen -#}
            {%- do cdc_lakehouse.run_statement('refresh table ' ~ name) -%}
            {%- set found = run_query('select count(*) from %s where %s' % (name, condition)).rows[0][0] -%}
            {%- do cdc_lakehouse.run_statement('delete from %s where %s' % (name, condition)) if found -%}
            {#- in any case: a run that was killed may have left them -#}
            {%- do cdc_lakehouse.remove_versions(name) -%}
            {{ log('erased %s %s of %s' % (found, rows, name), info=true) }}
        {%- endif -%}
    {%- endfor -%}
    {%- set left = run_query('select count(*) from %s where key is null or key = %s' % (quarantine, literal)).rows[0][0]
        if quarantine else 0 -%}
    {%- do exceptions.warn(left ~ ' records of ' ~ quarantine ~ ' have no key, or have this one and are of topics that '
        ~ bronze ~ ' has no events of: look whether they are of the same person (docs/runbook.md)') if left -%}
    {%- do cdc_lakehouse.scratch_rows() -%}
{%- endmacro %}
