{#
    A delete event for each key of `rows` that a truncate took away: a truncate has no key of
    its own. Without an offset, because the partition that it came in says nothing of the rows'.
#}
{% macro truncated_rows(table, rows, arrived) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- if not execute -%}{{ return('') }}{%- endif -%}
{%- set values = {
    'event_id': "concat(truncates.event_id, '-', existing." ~ key ~ ')',
    'topic_partition': 'cast(null as string)',
    'kafka_offset': 'cast(null as bigint)',
    'op': "'d'",
    'changed_at': 'truncates.source_ts',
    'is_deleted': 'true',
    table['key']: 'existing.' ~ key,
} -%}
select distinct
    {{ cdc_lakehouse._event_values(table, values, 'truncates.%s') }}
from {{ cdc_lakehouse.bronze_events(table['bronze_relation']) }} as truncates
inner join {{ rows }} as existing
    on truncates.source_epoch = existing.source_epoch
        and coalesce(
            truncates.source_position > existing.source_position,
            truncates.source_ts > existing.changed_at
        )
where
    truncates.op = 't'
    and truncates.source_position in ('{{ cdc_lakehouse.applied_truncates() | join("', '") }}')
    and {{ arrived | replace('ingest_', 'truncates.ingest_') }}
    and existing.{{ key }} is not null
{%- endmacro %}
