{# Whether a model reads what arrived alone: what `is_incremental()` is for the incremental models of dbt. #}
{% macro reads_increment() -%}
    {%- if not execute or not load_relation(this) or should_full_refresh() -%}{{ return(false) }}{%- endif -%}
    {%- set recorded = cdc_lakehouse.stored_table(this)['recorded'] -%}
    {%- for bronze_table in cdc_lakehouse.reads_of(model)['bronze'] -%}
        {%- set taken = cdc_lakehouse._points(recorded.get('complete_snapshots.' ~ bronze_table, '').split()) -%}
        {%- set known = cdc_lakehouse.overrides('complete_snapshots').get(bronze_table, []) | rejectattr(0, 'none') -%}
        {%- if known | reject('in', taken) | list -%}{{ return(false) }}{%- endif -%}
    {%- endfor -%}
    {{ return(true) }}
{%- endmacro %}
