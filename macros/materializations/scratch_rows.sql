{#
    Compute a query of a model once, into files, for the model's statements that follow; its
    rows as a relation. The files are there up to the end of the run (see clear_scratch_rows).

    A cached view would not do: each statement analyses all that it was made from, and views on
    views double that every time.
#}
{% macro scratch_rows(name, query) -%}
    {%- set folder = cdc_lakehouse.scratch_folder() ~ '/' ~ this.schema ~ '__' ~ this.identifier ~ '__' ~ name -%}
    {%- do cdc_lakehouse.run_memory('scratch').update({folder: true}) -%}
    {%- do cdc_lakehouse.run_statement("insert overwrite directory '" ~ folder ~ "' using parquet " ~ query) -%}
    {{ return('parquet.`' ~ folder ~ '`') }}
{%- endmacro %}
