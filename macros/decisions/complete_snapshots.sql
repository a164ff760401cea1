{#
    The points (see _points) of the snapshots that held every row of a bronze table, oldest first:
    those of the variable `cdc_lakehouse_complete_snapshots`, those whose marker and reads have
    arrived (see check_decisions), and those that this model's table has applied before.
    A point without its epoch is none of them until a build has looked for it.
#}
{% macro complete_snapshots(bronze_table) -%}
    {%- set recorded = cdc_lakehouse.progress(this).get('complete_snapshots.' ~ bronze_table, '').split() -%}
    {%- set decided = cdc_lakehouse.decisions('complete_snapshots').get(bronze_table, []) -%}
    {{ return((decided | rejectattr(0, 'none') | list + cdc_lakehouse._points(recorded)) | unique | sort) }}
{%- endmacro %}
