{#
    The positions of the snapshots that held every row of a bronze table, oldest first: those of
    the variable `cdc_lakehouse_complete_snapshots`, those whose marker and reads have arrived
    (see check_decisions), and those that this model's table has applied before.
#}
{% macro complete_snapshots(bronze_table) -%}
    {%- set positions = cdc_lakehouse.decisions('complete_snapshots').get(bronze_table, []) | list -%}
    {%- for position in cdc_lakehouse.progress(this).get(
        'complete_snapshots.' ~ bronze_table, ''
    ).split() -%}
        {%- do positions.append(cdc_lakehouse._position_text(position)) -%}
    {%- endfor -%}
    {{ return(positions | unique | sort) }}
{%- endmacro %}
