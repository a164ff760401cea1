{#
    The typed change events that arrived in this run. An applied truncate is an event of every key
    that has one before it: of the keys that arrived, and, when it arrives itself, of all that
    bronze has and of the rows that this table has of others.
#}
{% macro arrived_events(events, table) -%}
{%- set arrived = cdc_lakehouse.arrived_in_this_run(table['bronze']) -%}
{%- set is_keyed = '`' ~ table['key'] ~ '` is not null and ' -%}
{%- set new = cdc_lakehouse.run_bounds().get(table['bronze'], {}).get('truncates', {}) if execute else {} -%}
{%- set new = cdc_lakehouse.decided_truncates('apply') | select('in', new) | list if new else [] -%}
{{ cdc_lakehouse._decided_events(table, events, is_keyed ~ arrived) }}
{%- if new %}
{%- set existing -%}
    (
        select
            `{{ table['key'] }}`, source_epoch, source_position, changed_at, topic, topic_generation,
            topic_partition, kafka_offset, __cdc_source_table
        from {{ events }}
        where {{ is_keyed }} {{ cdc_lakehouse.arrived_until_this_run(table['bronze']) }}
        union all
        select
            `{{ table['key'] }}`, source_epoch, source_position, changed_at, topic, topic_generation,
            topic_partition, kafka_offset, __cdc_source_table
        from ({{ cdc_lakehouse._stored_points(events, table) | indent(8) }})
    )
{%- endset %}
union all
{{ cdc_lakehouse._truncated_rows(
    table, existing, cdc_lakehouse._truncates(table, new, arrived)
) }}
{%- endif %}
{%- endmacro %}
