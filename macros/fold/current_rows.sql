{#
    The rows of a silver table: of every key the newest version, deletes marked. The first build
    and a full refresh fold all of bronze, an increment what arrived and the stored rows of its
    keys.
#}
{% macro current_rows(events) -%}
{%- set table = cdc_lakehouse.change_table(events) -%}
{%- if execute -%}
    {%- do graph.setdefault('cdc_lakehouse.folds', {}).update({model.unique_id: table}) -%}
{%- endif -%}
{%- if not cdc_lakehouse.reads_increment() -%}
{{ cdc_lakehouse.folded_rows(cdc_lakehouse.change_history(events, table), table) }}
{%- else -%}
{{ cdc_lakehouse.folded_rows(cdc_lakehouse.arrived_events(events, table, this), table, stored=this) }}
{%- endif -%}
{%- endmacro %}
