{# All typed change events of a table, up to the bound of the run. #}
{% macro change_history(events, table) -%}
select `{{ event_columns(table) | join('`, `') }}`
from {{ events }}
where rejection is null and {{ arrived_until_this_run(table['bronze']) }}
{%- if execute and applied_truncates() %}
union all
{{ truncated_rows(events, events, arrived_until_this_run(table['bronze'])) }}
{%- endif %}
{%- endmacro %}
