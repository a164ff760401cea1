{#
    After a run: remove the rows of its scratch views (see create_scratch_view), which may be
    of a key that is to be erased.
#}
{% macro clear_scratch_views() -%}
    {%- for folder in cdc_lakehouse.run_memory('scratch').values() -%}
        {%- do cdc_lakehouse.run_statement(
            "insert overwrite directory '" ~ folder
            ~ "' using parquet select 1 as nothing where false"
        ) -%}
    {%- endfor -%}
{%- endmacro %}
