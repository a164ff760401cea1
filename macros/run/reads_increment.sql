{#
    Whether a model reads what arrived alone: `is_incremental()` of the materializations cdc_merge
    and cdc_history. For a complete snapshot that is not yet applied it reads all of bronze: any row may
    be gone.
#}
{% macro reads_increment() -%}
    {%- if not cdc_lakehouse.keeps_rows() -%}{{ return(false) }}{%- endif -%}
    {%- set read = cdc_lakehouse._bronze_tables_of(model) -%}
    {%- for bronze_table, points in cdc_lakehouse.decisions('complete_snapshots').items()
        if bronze_table in read -%}
        {%- set taken = cdc_lakehouse.progress(this).get('complete_snapshots.' ~ bronze_table, '').split() -%}
        {%- set known = points | rejectattr(0, 'none') -%}
        {%- if known | reject('in', cdc_lakehouse._points(taken)) | list -%}{{ return(false) }}{%- endif -%}
    {%- endfor -%}
    {{ return(true) }}
{%- endmacro %}
