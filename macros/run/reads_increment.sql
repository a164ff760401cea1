{#
    True if a model adds to its table, false if it rebuilds it: the counterpart of
    `is_incremental()` for dbt's own incremental models. A complete snapshot that is not yet
    applied rebuilds the table, because any row may be missing from it.
#}
{% macro reads_increment() -%}
    {%- if not execute or should_full_refresh() or not load_relation(this) -%}
        {{ return(false) }}
    {%- endif -%}
    {%- if cdc_lakehouse.decisions('complete_snapshots') -%}
        {%- for bronze_table in cdc_lakehouse._bronze_tables_of(model) -%}
            {%- set taken = cdc_lakehouse.progress(this).get('complete_snapshots.' ~ bronze_table, '').split() -%}
            {%- if cdc_lakehouse.complete_snapshots(bronze_table) | reject('in', taken) | list -%}
                {{ return(false) }}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(true) }}
{%- endmacro %}
