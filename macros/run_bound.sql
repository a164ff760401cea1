{#
    Up to which `ingest_batch` of a bronze table this run reads: 0 where it holds nothing.

    on-run-start writes the bounds down once (create_run_bounds), so that all models of a
    run agree while the ingest goes on.
#}
{% macro run_bound(bronze_table) -%}
    {%- set bounds = run_query(
        "select upper_bound from " ~ run_bounds_relation()
        ~ " where bronze_table = '" ~ bronze_table ~ "'"
    ) -%}
    {{ return(bounds.columns[0].values()[0] | int if bounds.rows else 0) }}
{%- endmacro %}
