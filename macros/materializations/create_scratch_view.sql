{#
    Compute a query once, into files, and name its rows for the statements that follow.

    The files lie in the folder of the schema staging, which holds only views. A cached view
    would not do: each statement analyses all that it was made from, and views on views
    double that every time.
#}
{% macro create_scratch_view(name, query) -%}
    {%- set path = scratch_folder(name) -%}
    {%- do run_query(
        "insert overwrite directory '" ~ path ~ "' using parquet " ~ query
    ) -%}
    {%- do run_query(
        'create or replace temporary view ' ~ name
        ~ " using parquet options (path '" ~ path ~ "')"
    ) -%}
{%- endmacro %}
