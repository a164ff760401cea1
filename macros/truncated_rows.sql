{#
    A delete event for each key that a truncate took away: a truncate has no key of its own.

    Args: the staging model, the relation whose keys there were, and which truncates count.
    It has no offset, because the partition that it came in says nothing of the rows'.
#}
{% macro truncated_rows(events, rows, arrived) -%}
{%- set table = change_table_of(events) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set bronze = source('bronze', table['bronze']) -%}
select distinct
    concat(truncates.event_id, '-', existing.{{ key }}) as event_id,
    truncates.topic,
    cast(null as int) as kafka_partition,
    cast(null as bigint) as kafka_offset,
    'd' as op,
    truncates.source_epoch,
    truncates.source_lsn,
    truncates.source_ts as changed_at,
    truncates.ingested_at,
    truncates.ingest_batch,
    truncates.ingest_date,
    true as is_deleted,
    {%- for column in table['columns'] %}
    {{ 'existing.' ~ key if column == table['key'] else 'null as `' ~ column ~ '`' }},
    {%- endfor %}
    cast(array() as array<string>) as unavailable_columns,
    cast(null as string) as rejection
from {{ bronze }} as truncates
inner join {{ rows }} as existing
    on
        truncates.source_epoch = existing.source_epoch
        and truncates.source_lsn > existing.source_lsn
where
    truncates.op = 't'
    and truncates.source_lsn in ({{ applied_truncates() | join(', ') }})
    and {{ arrived | replace('ingest_', 'truncates.ingest_') }}
    and existing.{{ key }} is not null
{%- endmacro %}
