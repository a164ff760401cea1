{#
    Compute a query of a model once, into files, for the statements that follow; its rows as a
    relation. The files are removed at the end of the run (clear_scratch_rows).

    A cached view would not do: each statement analyses all that it was made from.
#}
{% macro scratch_rows(name, query) -%}
    {%- set schema = generate_schema_name('staging', none) -%}
    {%- set folder = cdc_lakehouse.schema_folder(schema) ~ '/scratch/' ~ [this.schema, this.identifier, name] | join('__') -%}
    {%- do graph.setdefault('cdc_lakehouse.scratch', {}).update({folder: true}) -%}
    {%- do cdc_lakehouse.run_statement("insert overwrite directory '" ~ folder ~ "' using parquet " ~ query) -%}
    {{ return('parquet.`' ~ folder ~ '`') }}
{%- endmacro %}
