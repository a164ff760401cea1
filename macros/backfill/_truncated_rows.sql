{#
    A delete event for each key that a truncate of `truncates` (see _truncates) took away, as that
    has no key of its own: those whose newest event of `rows` before it is of its source. Without
    an offset, because the partition that it came in says nothing of the rows'.
#}
{% macro _truncated_rows(table, rows, truncates) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
select
    {{ cdc_lakehouse._event_values(table, key, {
        'event_id': "concat(__cdc_truncate.event_id, '-', " ~ key ~ ')',
        'op': "'d'",
    }, '__cdc_truncate.%s') }}
from (
    select
        existing.{{ key }}, __cdc_truncate,
        max_by(
            {{ cdc_lakehouse._is_of_source('existing', '__cdc_truncate') | indent(12) }},
            struct(existing.source_epoch, existing.source_position, existing.changed_at)
        ) as __cdc_is_of_source
    from {{ truncates | indent(4) }} as truncates
    inner join {{ rows | indent(4) }} as existing
        on {{ cdc_lakehouse._is_before('existing', '__cdc_truncate') | indent(8) }}
    group by existing.{{ key }}, __cdc_truncate
)
where __cdc_is_of_source
{%- endmacro %}
