{#
    The typed change events that arrived in this run. An applied truncate is an event of every key
    that has one before it: of the keys that arrived, and, when it arrives itself, of all keys of
    `rows`, which this table has.
#}
{% macro arrived_events(events, table, rows) -%}
{%- set has_arrived = '`' ~ table['key'] ~ '` is not null and ' ~ cdc_lakehouse.arrived_in_this_run(table['bronze']) -%}
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
{{ cdc_lakehouse.truncated_rows(table, rows, cdc_lakehouse.arrived_in_this_run(table['bronze'])) }}
{%- endif %}
{%- endmacro %}
