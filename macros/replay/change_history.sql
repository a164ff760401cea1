{#
    All typed change events of a table, up to the bound of the run; of the keys in the relation
    `keys` only, where one is given.
#}
{% macro change_history(events, table, keys=none) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set bound = cdc_lakehouse.arrived_until_this_run(table['bronze']) -%}
{%- if keys -%}
select history.* from (
{%- endif %}
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
{%- for position in cdc_lakehouse.complete_snapshots(table['bronze'], this) if execute %}
union all
{{ cdc_lakehouse._missing_rows(events, table, position, bound, keys) }}
{%- endfor %}
{%- endmacro %}
