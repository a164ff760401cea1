{# The events that `arrived` yields, each with its standing to the stored row of its key. #}
{% macro compared_events(arrived, table) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
with

arrived as (

    {{ arrived | indent(4) }}

),

touched as (

    select distinct {{ key }} from arrived

),

stored as (

    select /*+ broadcast(touched) */
        target.{{ key }},
        target.op,
        target.is_deleted,
        target.source_epoch,
        target.source_lsn,
        target.kafka_offset,
        target.changed_at,
        target.carried_columns

    from {{ this }} as target

    left semi join touched
        on target.{{ key }} = touched.{{ key }}

)

select /*+ broadcast(stored) */
    event.*,
    {{ standing() | indent(4) }} as standing
from arrived as event
left join stored
    on event.{{ key }} = stored.{{ key }}
{%- endmacro %}
