{#
    The typed change events that arrived in this run. An applied truncate is an event of every key
    that has one before it: of the keys that arrived, and, when it arrives itself, of all keys of
    `rows`, which this table has.
#}
{% macro arrived_events(events, table, rows) -%}
{%- set arrived = cdc_lakehouse.arrived_in_this_run(table['bronze']) -%}
{%- set has_arrived = '`' ~ table['key'] ~ '` is not null and ' ~ arrived -%}
{%- set truncates = cdc_lakehouse.applied_truncates() if execute else [] -%}
select `{{ cdc_lakehouse.event_columns(table) | join('`, `') }}`
from {{ events }}
where {{ has_arrived }}
{%- if truncates %}
{{ cdc_lakehouse._truncated_rows(
    table, '(select * from ' ~ events ~ ' where ' ~ has_arrived ~ ')',
    cdc_lakehouse.arrived_until_this_run(table['bronze']), truncates
) }}
{{ cdc_lakehouse._truncated_rows(table, rows, arrived, truncates) }}
{%- endif %}
{%- endmacro %}
