{#
    Remove the files of all scratch rows, also what a killed run left: their rows may be of a key
    that is erased.
#}
{% macro clear_scratch_rows() -%}
    {%- do cdc_lakehouse.run_statement(
        "insert overwrite directory '" ~ cdc_lakehouse.scratch_folder()
        ~ "' using parquet select 1 as nothing where false"
    ) -%}
{%- endmacro %}
