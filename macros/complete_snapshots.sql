{#
    The LSNs of the snapshots of a bronze table that the variable `complete_snapshots` says
    held every row that there was, oldest first.
#}
{% macro complete_snapshots(bronze_table) -%}
    {%- set named = var('complete_snapshots', {}).get(bronze_table, []) -%}
    {%- set lsns = [named] if named is string or named is number else named -%}
    {{ return(lsns | map('int') | sort | list) }}
{%- endmacro %}
