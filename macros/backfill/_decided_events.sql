{#
    Change events of `events` that `condition` is true of, in the columns that the fold reads, and what
    the truncates that have arrived made of their keys. A read that was taken after a truncate of its
    source stands behind it.
#}
{% macro _decided_events(table, events, condition) -%}
{%- set columns = '`' ~ cdc_lakehouse.event_columns(table)[:-1] | join('`, `') ~ '`' -%}
{%- set points = cdc_lakehouse.decided_truncates('apply') if execute else [] -%}
{%- set truncates = cdc_lakehouse._truncates(
    table, points, cdc_lakehouse.arrived_until_this_run(table['bronze'])
) -%}
{%- if not points -%}
select {{ columns }}, cast(null as string) as position_before_read
from {{ events }}
where {{ condition }}
{%- else -%}
select
    {{ columns }},
    if(
        op = 'r',
        array_max(transform(
            filter(
                __cdc_truncates,
                truncate -> truncate.source_epoch = existing.source_epoch
                and {{ cdc_lakehouse._is_of_source('existing', 'truncate') | indent(16) }}
                and not {{ cdc_lakehouse._is_before('existing', 'truncate') | indent(16) }}
            ),
            truncate -> truncate.source_position
        )),
        null
    ) as position_before_read
from (select * from {{ events }} where {{ condition }}) as existing
cross join (
    select collect_list(__cdc_truncate) as __cdc_truncates from {{ truncates | indent(4) }}
)
union all
{{ cdc_lakehouse._truncated_rows(
    table, '(select * from ' ~ events ~ ' where ' ~ condition ~ ')', truncates
) }}
{%- endif -%}
{%- endmacro %}
