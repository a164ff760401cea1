{# Remove the files of all scratch rows, also a killed run's: they may hold an erased key's rows. #}
{% macro clear_scratch_rows() -%}
    {%- set schema = generate_schema_name('staging', none) -%}
    {%- do cdc_lakehouse.run_statement(
        "insert overwrite directory '" ~ cdc_lakehouse.schema_folder(schema)
        ~ "/scratch' using parquet select 1 as nothing where false"
    ) -%}
{%- endmacro %}
