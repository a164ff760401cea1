{#
    Make the bronze tables known to the catalogue. Ingest writes them by path, and needs
    none; they lie below the schema's own folder.
#}
{% macro register_bronze() -%}
    {%- if execute -%}
        {%- set known = [] -%}
        {%- for source in bronze_sources() -%}
            {%- if loop.first -%}
                {%- do run_query('create schema if not exists ' ~ source.schema) -%}
                {%- do run_query(
                    'create schema if not exists ' ~ generate_schema_name('staging', none)
                ) -%}
                {%- for row in run_query('show tables in ' ~ source.schema) -%}
                    {%- do known.append(row[1]) -%}
                {%- endfor -%}
            {%- endif -%}
            {%- if source.name in known -%}
                {#- a session that lives on remembers the files that it has seen -#}
                {%- do run_query('refresh table ' ~ source.schema ~ '.' ~ source.name) -%}
            {%- else -%}
                {%- set folder = schema_folder(source.schema) -%}
                {%- if source.name not in written_tables(folder) -%}
                    {{ exceptions.raise_compiler_error(
                        'bronze.' ~ source.name ~ ' has not been ingested: list its topic'
                        ~ ' in the ingest\'s topics file and run python -m ingest once'
                    ) }}
                {%- endif -%}
                {%- do run_query(
                    'create table ' ~ source.schema ~ '.' ~ source.name
                    ~ " using hudi tblproperties ('hoodie.write.table.version' = '6',"
                    ~ " 'hoodie.write.auto.upgrade' = 'false',"
                    ~ " 'hoodie.metadata.enable' = 'false')"
                    ~ " location '" ~ folder ~ '/' ~ source.name ~ "'"
                ) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
