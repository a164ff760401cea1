{#
    More rows of a union: a delete event for each key of `rows` that the truncates at some
    positions took away, as a truncate has no key of its own. Without an offset, because the
    partition that it came in says nothing of the rows'.
#}
{% macro _truncated_rows(table, rows, arrived, positions) -%}
{%- set key = 'existing.`' ~ table['key'] ~ '`' -%}
{%- if positions -%}
union all
select distinct
    {{ cdc_lakehouse._event_values(table, key, {
        'event_id': "concat(truncates.event_id, '-', " ~ key ~ ')',
        'op': "'d'",
        'changed_at': 'truncates.source_ts',
    }, 'truncates.%s') }}
from {{ cdc_lakehouse.bronze_events(table['bronze_relation']) }} as truncates
inner join {{ rows }} as existing
    on truncates.source_epoch = existing.source_epoch
        and coalesce(
            truncates.source_position > existing.source_position,
            truncates.source_ts > existing.changed_at
        )
where
    truncates.op = 't'
    and truncates.source_position in ('{{ positions | join("', '") }}')
    and {{ arrived | replace('ingest_', 'truncates.ingest_') }}
    and {{ key }} is not null
{%- endif -%}
{%- endmacro %}
