{#
    Remove the rows of this model's scratch views (see create_scratch_view): they may be of a key
    that is to be erased.
#}
{% macro clear_scratch_views() -%}
    {%- for folder in run_memory('scratch').pop(model.unique_id, []) -%}
        {%- do run_query(
            "insert overwrite directory '" ~ folder
            ~ "' using parquet select 1 as nothing where false"
        ) -%}
    {%- endfor -%}
{%- endmacro %}
