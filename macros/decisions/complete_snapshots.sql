{#
    The positions of the snapshots that held every row of a bronze table, oldest first: those of
    the variable `cdc_lakehouse_complete_snapshots`, those whose marker and reads have arrived
    (see check_decisions), and those that the table `relation` has applied before.
#}
{% macro complete_snapshots(bronze_table, relation=none) -%}
    {%- set given = cdc_lakehouse.decisions('complete_snapshots') -%}
    {%- set named = (given.get(bronze_table) or []) if given is mapping else [] -%}
    {%- set positions = graph.get('cdc_lakehouse.complete_snapshots', {}).get(bronze_table, []) | list -%}
    {%- for position in ([named] if named is string or named is number else named) -%}
        {%- do positions.append(cdc_lakehouse._position_text(position)) -%}
    {%- endfor -%}
    {%- if relation is not none -%}
        {%- for position in cdc_lakehouse.progress(relation).get(
            'complete_snapshots.' ~ bronze_table, ''
        ).split() -%}
            {%- do positions.append(cdc_lakehouse._position_text(position)) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(positions | unique | sort | list) }}
{%- endmacro %}
