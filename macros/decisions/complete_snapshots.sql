{#
    The LSNs of the snapshots of a bronze table that held every row that there was, oldest
    first: those that the variable `cdc_lakehouse_complete_snapshots` names, and those that a
    table (`relation`, where one is given) has taken in before.
#}
{% macro complete_snapshots(bronze_table, relation=none) -%}
    {%- set given = cdc_lakehouse.decisions('complete_snapshots') -%}
    {%- set named = (given.get(bronze_table) or []) if given is mapping else [] -%}
    {%- set lsns = [] -%}
    {%- for lsn in ([named] if named is string or named is number else named) -%}
        {%- do lsns.append(lsn | int) -%}
    {%- endfor -%}
    {%- if relation is not none -%}
        {%- for lsn in cdc_lakehouse.recorded_decisions(relation, 'complete_snapshots.' ~ bronze_table) -%}
            {%- do lsns.append(lsn) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(lsns | unique | sort | list) }}
{%- endmacro %}
