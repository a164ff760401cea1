{#
    True if a model adds to its table, false if it rebuilds it: the counterpart of
    `is_incremental()` for dbt's own incremental models. A complete snapshot that is not yet
    applied rebuilds the table, because any row may be missing from it.
#}
{% macro reads_increment() -%}
    {%- if not execute or should_full_refresh() or not load_relation(this) -%}
        {{ return(false) }}
    {%- endif -%}
    {{ return(not cdc_lakehouse.is_snapshot_due(model, this)) }}
{%- endmacro %}
