{#
    All typed change events of a table up to the bound of the run. With `keys` those of the keys in
    that relation, and `events` names a temporary view that this creates: of them, and of the
    records whose Kafka key lacks the key's column. All others are left out before any JSON is
    parsed. Spark analyses a view of the catalogue for each query on it, and a temporary one once.
#}
{% macro change_history(events, table, keys=none) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set bound = cdc_lakehouse.arrived_until_this_run(table['bronze']) -%}
{%- set truncates = cdc_lakehouse.applied_truncates() if execute else [] -%}
{%- if keys -%}
    {%- set of_keys -%}
        left semi join (
            select {{ key }} as wanted_key from {{ keys }} union all select null
        ) as wanted
            on {{ cdc_lakehouse.key_value(table, has_row=false) | indent(16) }} <=> wanted.wanted_key
    {%- endset -%}
    {%- set events = [this.schema, this.identifier, events] | join('__') -%}
    {%- do cdc_lakehouse.run_statement(create_temporary_view(
        events, cdc_lakehouse.change_events(table['bronze_relation'], table, of_keys)
    )) -%}
{%- endif -%}
{{ 'select history.* from (' if keys }}
select `{{ cdc_lakehouse.event_columns(table) | join('`, `') }}`
from {{ events }}
where {{ key }} is not null and {{ bound }}
{%- if truncates %}
union all
{{ cdc_lakehouse._truncated_rows(table, events, bound, truncates) }}
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
