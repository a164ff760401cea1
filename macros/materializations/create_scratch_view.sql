{#
    Compute a query once, into files, and name its rows for the statements that follow, up to
    the end of the run (see clear_scratch_views).

    The files lie in the folder of the schema staging, which holds only views. A cached view
    would not do: each statement analyses all that it was made from, and views on views
    double that every time.
#}
{% macro create_scratch_view(name, query) -%}
    {%- set folder = cdc_lakehouse.schema_folder(cdc_lakehouse.generate_schema_name('staging', none)) ~ '/' ~ name -%}
    {%- do cdc_lakehouse.run_memory('scratch').update({name: folder}) -%}
    {%- do cdc_lakehouse.run_statement("insert overwrite directory '" ~ folder ~ "' using parquet " ~ query) -%}
    {%- do cdc_lakehouse.run_statement(
        'create or replace temporary view ' ~ name
        ~ " using parquet options (path '" ~ folder ~ "')"
    ) -%}
{%- endmacro %}
