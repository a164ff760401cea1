{#
    Whether the variable `cdc_lakehouse_complete_snapshots` names a snapshot that has
    not been applied to a model's table: the model then rebuilds it, since any row may be one
    that the snapshot lacks.
#}
{% macro is_snapshot_due(node, relation) -%}
    {%- if not cdc_lakehouse.decisions('complete_snapshots') -%}{{ return(false) }}{%- endif -%}
    {%- for bronze_table in cdc_lakehouse.bronze_tables_of(node) -%}
        {%- set taken = cdc_lakehouse.recorded_decisions(relation, 'complete_snapshots.' ~ bronze_table) -%}
        {%- for position in cdc_lakehouse.complete_snapshots(bronze_table) if position not in taken -%}
            {{ return(true) }}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}
