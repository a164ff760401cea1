{#
    The statement that names the rows of a query, after it has computed them into files.

    The files lie in the folder of the schema staging, which holds only views. A cached view
    would not do: each statement analyses all that it was made from, and views on views
    double that every time.
#}
{% macro scratch_view(name, query) -%}
    {%- set path = schema_folder(generate_schema_name('staging', none)) ~ '/' ~ name -%}
    {%- do run_query(
        "insert overwrite directory '" ~ path ~ "' using parquet " ~ query
    ) -%}
    create or replace temporary view {{ name }} using parquet options (path '{{ path }}')
{%- endmacro %}
