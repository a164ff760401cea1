{#
    Up to which `ingest_batch` of a bronze table this run reads: 0 where it holds nothing.

    on-run-start writes the bounds down once (create_run_bounds), so that all models of a
    run agree while the ingest goes on.
#}
{% macro run_bound(bronze_table) -%}
    {%- set memory = run_memory('bounds') -%}
    {%- if not memory -%}
        {%- set bounds = {} -%}
        {%- for row in run_query(
            'select bronze_table, upper_bound from ' ~ run_bounds_relation()
        ) -%}
            {%- do bounds.update({row[0]: row[1] | int}) -%}
        {%- endfor -%}
        {#- at once: other threads read it meanwhile -#}
        {%- do memory.update(bounds) -%}
    {%- endif -%}
    {{ return(memory.get(bronze_table, 0)) }}
{%- endmacro %}
