{# Remove the rows of a scratch view: they may be of a key that is to be erased. #}
{% macro clear_scratch_view(name) -%}
    {%- do run_query(
        "insert overwrite directory '" ~ scratch_folder(name)
        ~ "' using parquet select 1 as nothing where false"
    ) -%}
{%- endmacro %}
