{#
    Compute a query of a model once, into files, and name its rows for the model's statements
    that follow; the view's name. The files are there up to the end of the run (see
    clear_scratch_views).

    A cached view would not do: each statement analyses all that it was made from, and views on
    views double that every time.
#}
{% macro create_scratch_view(name, query) -%}
    {%- set view = this.schema ~ '__' ~ this.identifier ~ '__' ~ name -%}
    {%- set folder = cdc_lakehouse.scratch_folder() ~ '/' ~ view -%}
    {%- do cdc_lakehouse.run_memory('scratch').update({view: true}) -%}
    {%- do cdc_lakehouse.run_statement("insert overwrite directory '" ~ folder ~ "' using parquet " ~ query) -%}
    {%- do cdc_lakehouse.run_statement(
        'create or replace temporary view ' ~ view
        ~ " using parquet options (path '" ~ folder ~ "')"
    ) -%}
    {{ return(view) }}
{%- endmacro %}
