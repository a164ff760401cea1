{#
    Remove the files of all scratch rows, also what a killed run left: their rows may be of a key
    that is erased.
#}
{% macro clear_scratch_rows() -%}
    {%- set schema = cdc_lakehouse.generate_schema_name('staging', none) -%}
    {%- do cdc_lakehouse.run_statement(
        "insert overwrite directory '" ~ cdc_lakehouse.schema_folder(schema)
        ~ "/scratch' using parquet select 1 as nothing where false"
    ) -%}
{%- endmacro %}
