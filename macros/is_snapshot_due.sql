{#
    Whether the variable `complete_snapshots` names a snapshot that a model's table has not
    taken in yet: the model then builds it anew, as what a snapshot lacked may be any row.
#}
{% macro is_snapshot_due(node, relation) -%}
    {%- if not var('complete_snapshots', {}) -%}{{ return(false) }}{%- endif -%}
    {%- set recorded = progress(relation) -%}
    {%- for bronze_table in bronze_tables_of(node) -%}
        {%- set taken = recorded.get('complete_snapshots.' ~ bronze_table, '').split() -%}
        {%- for lsn in complete_snapshots(bronze_table) if lsn | string not in taken -%}
            {{ return(true) }}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(false) }}
{%- endmacro %}
