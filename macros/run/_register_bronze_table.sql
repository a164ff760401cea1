{#
    Make one bronze table known to the catalogue; `known` is what the catalogue says of it, with
    its `location`, both empty where there is none. One of an earlier version is registered
    again, with its new columns.
#}
{% macro _register_bronze_table(name, table, known, location) -%}
    {%- set ours = cdc_lakehouse.schema_folder(table.split('.')[0]) ~ '/' ~ name -%}
    {%- if known and location != ours -%}
        {{ exceptions.raise_compiler_error(
            'the catalogue has a table ' ~ table ~ ' at ' ~ location
            ~ ', and the ingest writes to ' ~ ours
            ~ ': drop that table, or give this lake a schema of its own'
        ) }}
    {%- endif -%}
    {%- set note = "'lakehouse.location' = '" ~ ours ~ "'" -%}
    {%- if known and ('source_position' in known or name == 'rejected_events') -%}
        {%- do cdc_lakehouse.run_statement(
            'alter table ' ~ table ~ ' set tblproperties (' ~ note ~ ')'
        ) -%}
    {%- else -%}
        {%- if known -%}{%- do cdc_lakehouse.run_statement('drop table ' ~ table) -%}{%- endif -%}
        {%- set folders = graph.setdefault('cdc_lakehouse.bronze folders', {}) -%}
        {%- if not folders -%}
            {%- for row in run_query(
                "select distinct element_at(split(_metadata.file_path, '/'), -3) from text.`"
                ~ cdc_lakehouse.schema_folder(table.split('.')[0])
                ~ '/*/.hoodie/hoodie.properties`'
            ) -%}
                {%- do folders.update({row[0]: true}) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- if name not in folders -%}
            {{ exceptions.raise_compiler_error(
                'bronze.' ~ name ~ ' has not been ingested: list its topic'
                ~ ' in the ingest\'s topics file and run python -m ingest once'
            ) }}
        {%- endif -%}
        {%- do cdc_lakehouse.run_statement(
            'create table ' ~ table
            ~ " using hudi tblproperties ('hoodie.write.table.version' = '6',"
            ~ " 'hoodie.write.auto.upgrade' = 'false', 'hoodie.metadata.enable' = 'false', "
            ~ note ~ ") location '" ~ ours ~ "'"
        ) -%}
        {%- set columns = run_query('describe ' ~ table).columns[0].values() -%}
        {%- if 'source_position' not in columns and name != 'rejected_events' -%}
            {{ exceptions.raise_compiler_error(
                'bronze.' ~ name ~ ' was written by an earlier version and'
                ~ ' lacks columns: run python -m ingest once, which adds them'
            ) }}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
