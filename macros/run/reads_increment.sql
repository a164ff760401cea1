{#
    True where a model builds on its table, false where it builds it anew: what
    `is_incremental()` is for dbt's own incremental models. A complete snapshot that the table
    has not taken in builds it anew, as what the snapshot lacked may be any row.
#}
{% macro reads_increment() -%}
    {%- if not execute or should_full_refresh() or not load_relation(this) -%}
        {{ return(false) }}
    {%- endif -%}
    {{ return(not is_snapshot_due(model, this)) }}
{%- endmacro %}
