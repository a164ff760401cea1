{#
    Remove the files of all scratch views (see create_scratch_view), also what a killed run
    left: their rows may be of a key that is erased.
#}
{% macro clear_scratch_views() -%}
    {%- do cdc_lakehouse.run_statement(
        "insert overwrite directory '" ~ cdc_lakehouse.scratch_folder()
        ~ "' using parquet select 1 as nothing where false"
    ) -%}
{%- endmacro %}
