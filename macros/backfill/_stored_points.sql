{#
    Where the rows or versions that this table has stored stand, of those whose event is not in
    `events` (bronze has no more): a query, in the columns that tell whether a truncate or a complete
    snapshot is of them. Their source table is not known.
#}
{% macro _stored_points(events, table) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set is_history = cdc_lakehouse.is_history(model) -%}
select
    target.{{ key }},
    {%- if is_history %}
    from_epoch as source_epoch, from_position as source_position, valid_from as changed_at,
    regexp_replace(cdc_state.place.topic_partition, '/[^/]*$', '') as topic,
    null as topic_generation, null as topic_partition, null as kafka_offset,
    is_current as __cdc_is_live,
    {%- else %}
    source_epoch,
    {#- of a read without one it is that of what it stands behind #}
    if(op = 'r' and source_position <=> cdc_state.position_before_read, null, source_position) as source_position,
    changed_at, regexp_replace(cdc_state.topic_partition, '/[^/]*$', '') as topic,
    cdc_state.topic_generation, cdc_state.topic_partition, kafka_offset,
    not is_deleted as __cdc_is_live,
    {%- endif %}
    op, ingest_batch, null as __cdc_source_table
from {{ this }} as target
left anti join {{ events }} as events
    on
        target.{{ key }} = events.{{ key }}
        {%- if is_history %}
        and target.from_epoch = events.source_epoch
        and target.from_position <=> events.source_position
        {%- endif %}
{%- endmacro %}
