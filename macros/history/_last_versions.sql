{# The last stored version of each key of `events` (a CTE), as history_rows reads it. #}
{% macro _last_versions(table) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
select {{ cdc_lakehouse._stored_versions(table) }}, target.last_event
from {{ this }} as target
left semi join (select {{ key }} from events) as touched
    on target.{{ key }} = touched.{{ key }}
where target.last_event is not null
{%- endmacro %}
