{# The change events that an increment of this model reads. #}
{% macro arrived_events(events, table) -%}
select `{{ event_columns(table) | join('`, `') }}`
from {{ events }}
where rejection is null and {{ arrived_in_this_run(table['bronze']) }}
{%- if execute and applied_truncates() %}
union all
{{ truncated_rows(events, this, arrived_in_this_run(table['bronze'])) }}
{%- endif %}
{%- endmacro %}
