{# All typed change events of a table, or of the keys in a relation, up to the bound of the run. #}
{% macro change_history(events, table, keys=none) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set bound = cdc_lakehouse.arrived_until_this_run(table['bronze']) -%}
{{ 'select history.* from (' if keys }}
select `{{ cdc_lakehouse.event_columns(table) | join('`, `') }}`
from {{ events }}
where {{ key }} is not null and {{ bound }}
{%- if execute and cdc_lakehouse.applied_truncates() %}
union all
{{ cdc_lakehouse.truncated_rows(table, events, bound) }}
{%- endif %}
{%- if keys %}
) as history
left semi join {{ keys }} as wanted
    on history.{{ key }} = wanted.{{ key }}
{%- endif %}
{%- for position in cdc_lakehouse.complete_snapshots(table['bronze']) if execute %}
union all
{{ cdc_lakehouse._missing_rows(events, table, position, bound, keys) }}
{%- endfor %}
{%- endmacro %}
