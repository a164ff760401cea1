{# Before a run: bronze is registered, the bounds are fixed for all models, and every decision is made. #}
{% macro start_run() -%}
    {%- if not execute -%}{{ return('') }}{%- endif -%}
    {%- set is_build = flags.WHICH in ['build', 'run', 'retry'] -%}
    {%- set quarantine = graph.nodes.values() | selectattr('name', 'equalto', 'rejected_rows') | first | default({}) -%}
    {%- set staging, read, views = generate_schema_name('staging', none), ['complete_snapshots'], [] -%}
    {%- for node in graph.nodes.values() -%}
        {%- if is_build and node.resource_type == 'model' and 'columns' in node.config.meta and 'key' in node.config.meta
            and node.unique_id not in quarantine.get('depends_on', {}).get('nodes', []) -%}
            {%- do exceptions.raise_compiler_error(
                "the model 'rejected_rows'" ~ (' does not list' if quarantine else ', which is not there, has to list')
                ~ " '" ~ node.name ~ "', whose rejected rows would be nowhere: add a line for it to "
                ~ (quarantine.original_file_path or 'one that calls the macro rejected_rows')) -%}
        {%- endif -%}
        {%- do read.extend(cdc_lakehouse.reads_of(node)['bronze'] if node.unique_id in selected_resources else []) -%}
        {%- if node.config.materialized == 'staging_view' and node.schema == staging
            and load_relation(api.Relation.create(schema=node.schema, identifier=node.alias)) -%}
            {%- do views.append(node.alias) -%}
        {%- endif -%}
    {%- endfor -%}

    {%- set sources = cdc_lakehouse.bronze_sources() -%}
    {%- set schema = (sources.values() | first | default('')).split('.')[0] -%}
    {#- where there is a view on bronze, both schemas are there -#}
    {%- for each in [schema, staging] if sources and not views -%}
        {%- do cdc_lakehouse.run_statement('create schema if not exists ' ~ each) -%}
    {%- endfor -%}
    {%- set new = dict.fromkeys(sources) -%}
    {%- set listed = 'show table extended in ' ~ schema ~ " like '" ~ sources | join('|') ~ "'" -%}
    {%- for row in (run_query(listed) if sources else []) if not row['isTemporary'] -%}
        {%- set location = (modules.re.findall('(?m)^Location: (.*)$', row['information']) + [''])[0] -%}
        {%- if 'lakehouse.location=' ~ location not in row['information'] -%}
            {%- do new.update({row['tableName']: location}) -%}
        {%- else -%}
            {%- do new.pop(row['tableName']) -%}
            {#- a session that lives on remembers the files that it has seen -#}
            {%- do cdc_lakehouse.run_statement('refresh table ' ~ sources[row['tableName']]) if row['tableName'] in read -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set described = run_query('describe schema ' ~ schema).rows if new else [] -%}
    {%- set folder = described | selectattr('info_name', 'equalto', 'Location') | map(attribute='info_value') | first -%}
    {%- set ingested = run_query("select distinct element_at(split(_metadata.file_path, '/'), -3) as name from text.`"
        ~ folder ~ '/*/.hoodie/hoodie.properties`').columns['name'].values() if new else [] -%}
    {%- for name, location in new.items() -%}
        {%- set ours = folder ~ '/' ~ name -%}
        {%- if location -%}
            {%- do exceptions.raise_compiler_error(
                'the catalogue has a table ' ~ sources[name] ~ ' at ' ~ location ~ ', and the ingest writes to '
                ~ ours ~ ': drop that table, or give this lake a schema of its own') -%}
        {%- elif name not in ingested -%}
            {%- do exceptions.raise_compiler_error(
                'bronze.' ~ name ~ " has not been ingested: list its topic in the ingest's topics file"
                ~ ' and run python -m ingest once') -%}
        {%- endif -%}
        {%- set properties = dict(cdc_lakehouse.table_properties(), **{'lakehouse.location': ours}) -%}
        {%- do cdc_lakehouse.run_statement('create table ' ~ sources[name] ~ " using hudi tblproperties ('"
            ~ properties.items() | map('join', "' = '") | join("', '") ~ "') location '" ~ ours ~ "'") -%}
    {%- endfor -%}

    {%- do cdc_lakehouse.run_bounds() -%}
    {%- if is_build -%}{%- do cdc_lakehouse.check_overrides() -%}{%- endif -%}
{%- endmacro %}
