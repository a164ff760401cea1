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
{#- a table of an earlier version does not have what the fold remembers, or has rows that are
    older than the source's because of a value that its type could not hold -#}
{%- set stored = cdc_lakehouse.stored_columns(this) -%}
{%- if 'untyped_columns' not in stored or 'rejected_place' in stored -%}
    {%- do cdc_lakehouse.stop_at_type_change(
        this, 'untyped_columns', stored.get('untyped_columns', 'no column'), 'array<string>'
    ) -%}
{%- endif -%}
{{ cdc_lakehouse.folded_rows(cdc_lakehouse.arrived_events(events, table, this), table, stored=this) }}
{%- endif -%}
{%- endmacro %}
