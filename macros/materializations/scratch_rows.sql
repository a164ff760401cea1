{#
    Compute a query of a model once, into files, for the model's statements that follow; its
    rows as a relation. The files are below the schema `staging`, which holds only views, up to
    the end of the run (see clear_scratch_rows).

    A cached view would not do: each statement analyses all that it was made from, and views on
    views double that every time.
#}
{% macro scratch_rows(name, query) -%}
    {%- set schema = cdc_lakehouse.generate_schema_name('staging', none) -%}
    {%- set folder = cdc_lakehouse.schema_folder(schema) ~ '/scratch/' ~ [this.schema, this.identifier, name] | join('__') -%}
    {%- do graph.setdefault('cdc_lakehouse.scratch', {}).update({folder: true}) -%}
    {%- do cdc_lakehouse.run_statement("insert overwrite directory '" ~ folder ~ "' using parquet " ~ query) -%}
    {{ return('parquet.`' ~ folder ~ '`') }}
{%- endmacro %}
