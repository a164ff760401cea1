{#
    True where an event stands before a truncate. A read that has no position was delivered
    before it in its partition or, in another, taken before it.
#}
{% macro _is_before(event, truncate) -%}
case
    when {{ event }}.source_epoch <> {{ truncate }}.source_epoch
        then {{ event }}.source_epoch < {{ truncate }}.source_epoch
    when {{ event }}.source_position is not null
        then {{ event }}.source_position < {{ truncate }}.source_position
    when
        {{ event }}.topic_partition = {{ truncate }}.topic_partition
        and {{ event }}.topic_generation = {{ truncate }}.topic_generation
        then {{ event }}.kafka_offset < {{ truncate }}.kafka_offset
    else {{ event }}.changed_at < {{ truncate }}.changed_at
end
{%- endmacro %}
