{#
    Make the bronze tables known to the catalogue: the ingest writes them by path, below the
    schema's folder. A table of a source's name at another location is somebody else's, and ends
    the run. A table notes its location, so that the next run need not ask.
#}
{% macro _register_bronze() -%}
    {%- set sources = cdc_lakehouse.bronze_sources() -%}
    {%- if not sources -%}{{ return('') }}{%- endif -%}
    {%- set schema = (sources.values() | first).split('.')[0] -%}
    {%- set staging = generate_schema_name('staging', none) -%}
    {%- set read = ['complete_snapshots'] -%}
    {%- set views = [] -%}
    {%- for node in graph.nodes.values() -%}
        {%- if node.unique_id in selected_resources -%}
            {%- do read.extend(cdc_lakehouse._bronze_tables_of(node)) -%}
        {%- endif -%}
        {%- if node.config.materialized == 'staging_view' and node.schema == staging
            and load_relation(api.Relation.create(schema=node.schema, identifier=node.alias)) -%}
            {%- do views.append(node.alias) -%}
        {%- endif -%}
    {%- endfor -%}
    {#- where there is a view on bronze, both schemas are there -#}
    {%- for each in [schema, staging] if not views -%}
        {%- do cdc_lakehouse.run_statement('create schema if not exists ' ~ each) -%}
    {%- endfor -%}
    {%- set known = {} -%}
    {%- set listed = 'show table extended in ' ~ schema ~ " like '" -%}
    {%- for row in run_query(listed ~ sources | join('|') ~ "'") if not row[2] -%}
        {%- do known.update({row[1]: row[3]}) -%}
    {%- endfor -%}
    {%- set ingested = [] -%}
    {%- for name, table in sources.items() -%}
        {%- set text = known.get(name, '') -%}
        {%- set location = (modules.re.findall('(?m)^Location: (.*)$', text) + [''])[0] -%}
        {%- set is_registered = 'lakehouse.location=' ~ location in text -%}
        {%- set folder = '' if is_registered else cdc_lakehouse.schema_folder(schema) -%}
        {%- set ours = folder ~ '/' ~ name -%}
        {%- set note = "'lakehouse.location' = '" ~ ours ~ "'" -%}
        {%- if is_registered -%}
            {#- a session that lives on remembers the files that it has seen -#}
            {%- if name in read -%}{%- do cdc_lakehouse.run_statement('refresh table ' ~ table) -%}{%- endif -%}
        {%- elif text and location != ours -%}
            {{ exceptions.raise_compiler_error(
                'the catalogue has a table ' ~ table ~ ' at ' ~ location
                ~ ', and the ingest writes to ' ~ ours
                ~ ': drop that table, or give this lake a schema of its own'
            ) }}
        {%- elif text -%}
            {%- do cdc_lakehouse.run_statement('alter table ' ~ table ~ ' set tblproperties (' ~ note ~ ')') -%}
        {%- else -%}
            {%- if not ingested -%}
                {%- do ingested.extend(run_query(
                    "select distinct element_at(split(_metadata.file_path, '/'), -3) from text.`"
                    ~ folder ~ '/*/.hoodie/hoodie.properties`'
                ).columns[0].values()) -%}
            {%- endif -%}
            {%- if name not in ingested -%}
                {{ exceptions.raise_compiler_error(
                    'bronze.' ~ name ~ ' has not been ingested: list its topic'
                    ~ ' in the ingest\'s topics file and run python -m ingest once'
                ) }}
            {%- endif -%}
            {%- do cdc_lakehouse.run_statement(
                'create table ' ~ table
                ~ " using hudi tblproperties ('hoodie.write.table.version' = '6',"
                ~ " 'hoodie.write.auto.upgrade' = 'false', 'hoodie.metadata.enable' = 'false',"
                ~ " 'hoodie.parquet.bloom.filter.enabled' = 'false', "
                ~ note ~ ") location '" ~ ours ~ "'"
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
