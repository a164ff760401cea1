{#
    The rows of a silver table: of every key the newest version, deletes marked. The first build
    and a full refresh fold all of bronze, an increment what arrived and the stored rows of its
    keys.

    An applied truncate is an event of every key that has one before it: of the keys that
    arrived, and, when it arrives itself, of all stored ones.
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
{%- set has_arrived = '`' ~ table['key'] ~ '` is not null and ' ~ cdc_lakehouse.arrived_in_this_run(table['bronze']) -%}
{%- set arrived -%}
select `{{ cdc_lakehouse.event_columns(table) | join('`, `') }}`
from {{ events }}
where {{ has_arrived }}
{%- if execute and cdc_lakehouse.applied_truncates() %}
union all
{{ cdc_lakehouse.truncated_rows(
    table, '(select * from ' ~ events ~ ' where ' ~ has_arrived ~ ')',
    cdc_lakehouse.arrived_until_this_run(table['bronze'])
) }}
union all
{{ cdc_lakehouse.truncated_rows(table, this, cdc_lakehouse.arrived_in_this_run(table['bronze'])) }}
{%- endif %}
{%- endset -%}
{{ cdc_lakehouse.folded_rows(arrived, table, stored=this) }}
{%- endif -%}
{%- endmacro %}
