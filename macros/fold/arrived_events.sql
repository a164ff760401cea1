{#
    The change events that an increment of this model reads. An applied truncate is an event of
    every key that has one before it: of the keys that arrived, and, when it arrives itself, of
    all stored ones.
#}
{% macro arrived_events(events, table) -%}
{%- set arrived = '`' ~ table['key'] ~ '` is not null and ' ~ cdc_lakehouse.arrived_in_this_run(table['bronze']) -%}
select `{{ cdc_lakehouse.event_columns(table) | join('`, `') }}`
from {{ events }}
where {{ arrived }}
{%- if execute and cdc_lakehouse.applied_truncates() %}
union all
{{ cdc_lakehouse.truncated_rows(
    table, '(select * from ' ~ events ~ ' where ' ~ arrived ~ ')',
    cdc_lakehouse.arrived_until_this_run(table['bronze'])
) }}
union all
{{ cdc_lakehouse.truncated_rows(table, this, cdc_lakehouse.arrived_in_this_run(table['bronze'])) }}
{%- endif %}
{%- endmacro %}
