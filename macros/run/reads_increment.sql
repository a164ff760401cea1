{#
    Whether a model reads what arrived alone: `is_incremental()` of the materializations cdc_merge and cdc_history.
    For a complete snapshot that is not yet applied it reads all of bronze: any row may be gone.
#}
{% macro reads_increment() -%}
    {%- if not execute or not load_relation(this) or should_full_refresh() -%}{{ return(false) }}{%- endif -%}
    {%- set recorded = cdc_lakehouse.stored_table(this)['recorded'] -%}
    {%- for bronze_table in cdc_lakehouse.reads_of(model)['bronze'] -%}
        {%- set taken = cdc_lakehouse._points(recorded.get('complete_snapshots.' ~ bronze_table, '').split()) -%}
        {%- set known = cdc_lakehouse.decisions('complete_snapshots').get(bronze_table, []) | rejectattr(0, 'none') -%}
        {%- if known | reject('in', taken) | list -%}{{ return(false) }}{%- endif -%}
    {%- endfor -%}
    {{ return(true) }}
{%- endmacro %}
