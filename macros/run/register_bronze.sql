{#
    Make the bronze tables known to the catalogue. Ingest writes them by path, and needs
    none; they lie below the schema's own folder. Other tables of the schema are left alone;
    one of a source's name at another location is somebody else's, and ends the run.
#}
{% macro register_bronze() -%}
    {%- if execute -%}
        {%- set sources = cdc_lakehouse.bronze_sources() -%}
        {%- set known = [] -%}
        {%- if sources -%}
            {%- set schema = sources[0].schema -%}
            {%- for name in [schema, cdc_lakehouse.generate_schema_name('staging', none)] -%}
                {%- do cdc_lakehouse.run_statement('create schema if not exists ' ~ name) -%}
            {%- endfor -%}
            {%- for row in run_query(
                'show table extended in ' ~ schema ~ " like '"
                ~ sources | map(attribute='name') | join('|') ~ "'"
            ) if not row[2] -%}
                {%- set ours = cdc_lakehouse.schema_folder(schema) ~ '/' ~ row[1] -%}
                {%- set location = modules.re.search('(?m)^Location: (.*)$', row[3])[1] -%}
                {%- if location != ours -%}
                    {{ exceptions.raise_compiler_error(
                        'the catalogue has a table ' ~ schema ~ '.' ~ row[1] ~ ' at ' ~ location
                        ~ ', and the ingest writes to ' ~ ours
                        ~ ': drop that table, or give this lake a schema of its own'
                    ) }}
                {%- endif -%}
                {#- one of an earlier version is registered again, with its new columns -#}
                {%- if 'source_position' in row[3] or row[1] == 'rejected_events' -%}
                    {%- do known.append(row[1]) -%}
                {%- else -%}
                    {%- do cdc_lakehouse.run_statement('drop table ' ~ schema ~ '.' ~ row[1]) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endif -%}
        {%- for source in sources -%}
            {%- if source.name in known -%}
                {#- a session that lives on remembers the files that it has seen -#}
                {%- do cdc_lakehouse.run_statement('refresh table ' ~ source.schema ~ '.' ~ source.name) -%}
            {%- else -%}
                {%- set folder = cdc_lakehouse.schema_folder(source.schema) -%}
                {%- if source.name not in cdc_lakehouse.written_tables(folder) -%}
                    {{ exceptions.raise_compiler_error(
                        'bronze.' ~ source.name ~ ' has not been ingested: list its topic'
                        ~ ' in the ingest\'s topics file and run python -m ingest once'
                    ) }}
                {%- endif -%}
                {%- do cdc_lakehouse.run_statement(
                    'create table ' ~ source.schema ~ '.' ~ source.name
                    ~ " using hudi tblproperties ('hoodie.write.table.version' = '6',"
                    ~ " 'hoodie.write.auto.upgrade' = 'false',"
                    ~ " 'hoodie.metadata.enable' = 'false')"
                    ~ " location '" ~ folder ~ '/' ~ source.name ~ "'"
                ) -%}
                {%- set columns = run_query(
                    'describe ' ~ source.schema ~ '.' ~ source.name
                ).columns[0].values() -%}
                {%- if 'source_position' not in columns and source.name != 'rejected_events' -%}
                    {{ exceptions.raise_compiler_error(
                        'bronze.' ~ source.name ~ ' was written by an earlier version and'
                        ~ ' lacks columns: run python -m ingest once, which adds them'
                    ) }}
                {%- endif -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
