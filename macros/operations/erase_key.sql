{#
    Erase a key of Kafka, with the files that had its rows (docs/runbook.md): its events from
    bronze, also those that have it in the row alone; its records from the quarantine; its rows
    from `rejected_rows`; its versions from the histories of the table. Bronze comes last: it says
    what else is of the key, also to a run after one that was killed.
#}
{% macro erase_key(table, key) -%}
    {%- set sources = cdc_lakehouse.bronze_sources() -%}
    {%- if table not in sources -%}
        {{ exceptions.raise_compiler_error(
            "erase_key: '" ~ table ~ "' is no bronze table; known: " ~ sources | join(', ')
        ) }}
    {%- endif -%}
    {%- set bronze = sources[table] -%}
    {%- set literal = "'" ~ key | replace('\\', '\\\\') | replace("'", "\\'") ~ "'" -%}
    {%- set events = ['select event_id from ' ~ bronze ~ ' where key = ' ~ literal] -%}
    {%- set reasons = [] -%}
    {%- set versions = [] -%}
    {%- set models = graph.nodes.values() | selectattr('resource_type', 'equalto', 'model') | list -%}
    {%- for staging in models if ['bronze', table] in staging.sources and 'columns' in staging.config.meta -%}
        {%- set view = api.Relation.create(schema=staging.schema, identifier=staging.alias) -%}
        {%- set declared = cdc_lakehouse.change_table(view) -%}
        {%- set column = declared['key'] -%}
        {#- as change_events says it -#}
        {%- set reason = 'null' if declared['key_columns'] else (
            "concat('" ~ column ~ ": \\'', left(" ~ cdc_lakehouse._key_text(declared, column, has_row=false)
            ~ ", 60), '\\' is no " ~ declared['columns'][column] ~ "')"
        ) -%}
        {%- set value, reason = run_query(
            'select hex(cast(' ~ cdc_lakehouse.key_value(declared, has_row=false) ~ ' as string)), hex(' ~ reason
            ~ ') from (select ' ~ literal ~ ' as key)'
        ).rows[0] -%}
        {#- '' is a key; null means that Kafka's key has none -#}
        {%- set is_of_key = 'false' if value is none else 'hex(cast(`' ~ column ~ "` as string)) = '" ~ value ~ "'" -%}
        {%- if load_relation(view) -%}
            {%- do events.append(
                'select event_id from ' ~ view ~ ' where ' ~ is_of_key ~ " or hex(rejection) = '" ~ (reason or 'none') ~ "'"
            ) -%}
        {%- endif -%}
        {%- do reasons.append(
            "table_name = '" ~ staging.alias.removeprefix('stg_') ~ "' and hex(reason) = '" ~ (reason or 'none') ~ "'"
        ) -%}
        {%- for node in models if cdc_lakehouse.is_history(node)
            and staging.unique_id in node.depends_on.nodes -%}
            {%- do versions.append((node.schema ~ '.' ~ node.alias, is_of_key, 'versions')) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set is_erased = 'event_id in (' ~ events | join(' union all ') ~ ')' -%}
    {%- set erased = [] -%}
    {%- for node in models | selectattr('name', 'equalto', 'rejected_rows') -%}
        {%- do erased.append((node.schema ~ '.' ~ node.alias, ([is_erased] + reasons) | join(' or '), 'rows')) -%}
    {%- endfor -%}
    {%- set quarantine = sources.get('rejected_events') -%}
    {%- if quarantine -%}
        {%- set is_of_topic = 'topic in (select topic from ' ~ bronze ~ ')' -%}
        {%- do erased.append((quarantine, 'key = ' ~ literal ~ ' and ' ~ is_of_topic, 'records')) -%}
    {%- endif -%}
    {%- for name, condition, rows in erased + versions + [(bronze, is_erased, 'events')] -%}
        {%- set schema, _, identifier = name.partition('.') -%}
        {%- if load_relation(api.Relation.create(schema=schema, identifier=identifier)) -%}
            {#- a session that lives on remembers the files that it has seen -#}
            {%- do cdc_lakehouse.run_statement('refresh table ' ~ name) -%}
            {%- set found = run_query('select count(*) from ' ~ name ~ ' where ' ~ condition).rows[0][0] -%}
            {%- if found -%}
                {%- do cdc_lakehouse.run_statement('delete from ' ~ name ~ ' where ' ~ condition) -%}
            {%- endif -%}
            {#- in any case: a run that was killed may have left them -#}
            {%- do cdc_lakehouse.remove_versions(name) -%}
            {{ log('erased ' ~ found ~ ' ' ~ rows ~ ' of ' ~ name, info=true) }}
        {%- endif -%}
    {%- endfor -%}
    {%- set left = run_query(
        'select count(*) from ' ~ quarantine ~ ' where key is null or key = ' ~ literal
    ).rows[0][0] if quarantine else 0 -%}
    {%- if left -%}
        {%- do exceptions.warn(
            left ~ ' records of ' ~ quarantine ~ ' have no key, or have this one and are of topics that '
            ~ bronze ~ ' has no events of: look whether they are of the same person (docs/runbook.md)'
        ) -%}
    {%- endif -%}
    {%- do cdc_lakehouse.clear_scratch_rows() -%}
{%- endmacro %}
