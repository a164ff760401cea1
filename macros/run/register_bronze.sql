{#
    Make the bronze tables known to the catalogue. Ingest writes them by path, and needs
    none; they lie below the schema's own folder.
#}
{% macro register_bronze() -%}
    {%- if execute -%}
        {%- set known = [] -%}
        {%- for source in cdc_lakehouse.bronze_sources() -%}
            {%- if loop.first -%}
                {%- do cdc_lakehouse.run_statement('create schema if not exists ' ~ source.schema) -%}
                {%- do cdc_lakehouse.run_statement(
                    'create schema if not exists ' ~ cdc_lakehouse.generate_schema_name('staging', none)
                ) -%}
                {%- for row in run_query(
                    'show table extended in ' ~ source.schema ~ " like '*'"
                ) if not row[2] -%}
                    {#- one of an earlier version is registered again, with its new columns -#}
                    {%- if 'source_position' in row[3] or row[1] == 'rejected_events' -%}
                        {%- do known.append(row[1]) -%}
                    {%- else -%}
                        {%- do cdc_lakehouse.run_statement('drop table ' ~ source.schema ~ '.' ~ row[1]) -%}
                    {%- endif -%}
                {%- endfor -%}
            {%- endif -%}
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
