{#
    Make the bronze tables known to the catalogue. Ingest writes them by path, and needs
    none; they lie below the schema's own folder. Other tables of the schema are left alone;
    one of a source's name at another location is somebody else's, and ends the run. A table
    notes its location, so that the next run need not ask where the schema's tables are.
#}
{% macro _register_bronze() -%}
    {%- set sources = cdc_lakehouse.bronze_sources() -%}
    {%- if not sources -%}{{ return('') }}{%- endif -%}
    {%- set schema = sources[0].schema -%}
    {%- set staging = cdc_lakehouse.generate_schema_name('staging', none) -%}
    {%- set read = [] -%}
    {%- set views = [] -%}
    {%- for node in graph.nodes.values() -%}
        {%- if node.unique_id in selected_resources -%}
            {%- do read.extend(cdc_lakehouse._bronze_tables_of(node)) -%}
        {%- endif -%}
        {%- if node.config.materialized == 'staging_view' and node.schema == staging -%}
            {%- do views.append(load_relation(
                api.Relation.create(schema=node.schema, identifier=node.alias)
            )) -%}
        {%- endif -%}
    {%- endfor -%}
    {#- where there is a view on bronze, both schemas are there -#}
    {%- if not views | select | list -%}
        {%- for name in [schema, staging] -%}
            {%- do cdc_lakehouse.run_statement('create schema if not exists ' ~ name) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set known = {} -%}
    {%- for row in run_query(
        'show table extended in ' ~ schema ~ " like '"
        ~ sources | map(attribute='name') | join('|') ~ "'"
    ) if not row[2] -%}
        {%- do known.update({row[1]: row[3]}) -%}
    {%- endfor -%}
    {%- for source in sources -%}
        {%- set table = schema ~ '.' ~ source.name -%}
        {%- set text = known.get(source.name, '') -%}
        {%- set location = (modules.re.findall('(?m)^Location: (.*)$', text) + [''])[0] -%}
        {%- if text and 'lakehouse.location=' ~ location in text -%}
            {#- a session that lives on remembers the files that it has seen -#}
            {%- if source.name in read -%}
                {%- do cdc_lakehouse.run_statement('refresh table ' ~ table) -%}
            {%- endif -%}
        {%- else -%}
            {%- do cdc_lakehouse._register_bronze_table(source.name, table, text, location) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
