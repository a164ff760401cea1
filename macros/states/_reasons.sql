{# Why a key has to be computed from bronze: the first reason that holds, null where its row is known without it. #}
{% macro _reasons(table) -%}
{%- set is_increment = table['is_increment'] -%}
{%- set snapshot = "struct(%s as epoch, '%s' as position)" % table['snapshots'][-1] if is_increment and table['snapshots'] -%}
{%- set point = "named_struct('epoch', source_epoch, 'position', __cdc_position)" -%}
case
    {%- if table['is_history'] %}
    when __cdc_part <> 0 then null
    when op = 'c' and size(unavailable_columns) > 0 then 'a create left values out'
    {%- if snapshot %}
    when {{ point }} <= {{ snapshot }} then 'from before a complete snapshot'
    {%- endif %}
    {%- if is_increment %}
    when __cdc_stored is null then null
    when op = 'r' then 'a read'
    when __cdc_stored.is_inheriting then 'the row inherits values'
    when not coalesce({{ point }} > __cdc_stored.at and {{ point }} >= __cdc_stored.ended, false) then 'a late event'
    when not coalesce(
        changed_at >= __cdc_stored.ended_at and changed_at >= __cdc_stored.changed_at
        and not (__cdc_stored.is_read and changed_at = __cdc_stored.changed_at), false
    ) then 'a clock that went back, or a read that overtook it'
    when not coalesce(
        __cdc_stored.last_read.topic_generation is null or topic_generation > __cdc_stored.last_read.topic_generation
        or topic_generation = __cdc_stored.last_read.topic_generation and (
            topic_partition is null
            or topic_partition = __cdc_stored.last_read.topic_partition
            and __cdc_first_offset > __cdc_stored.last_read.kafka_offset
        ), false
    ) then 'a read may stand behind it'
    {%- endif %}
    {%- else %}
    when exists(carried_columns, entry -> entry.sequence.op = 'c' and not entry.is_known
        {{- ' and not coalesce(array_contains(__cdc_stored.carried_columns, entry), false)' if is_increment }})
        then 'a create left values out'
    {%- if snapshot %}
    when __cdc_stored is null and __cdc_lowest <= {{ snapshot }} then 'from before a complete snapshot'
    {%- endif %}
    {%- if is_increment %}
    {#- the changes that it was delivered behind, and its first delivery, may be forgotten -#}
    when __cdc_stored is not null and __cdc_read.sequence.kafka_offset is not null and size(carried_columns) > 0
        then 'a read, and a change that left values out'
    when __cdc_stored.op = 'r' and __cdc_stored.is_deleted and __cdc_read is not null
        then 'a read of a row that a complete snapshot lacked'
    when __cdc_stored.op = 'd' and __cdc_stored.kafka_offset is null and __cdc_highest_sequence < __cdc_stored.sequence
        then 'from before a truncate, perhaps of another source table'
    when __cdc_read.sequence > __cdc_stored.sequence and __cdc_read.sequence.kafka_offset is not null
        and coalesce(__cdc_read.changed_at <= __cdc_stored.last_read_at, __cdc_stored.last_read_at is not null)
        then 'a read that lost before: its first delivery may stand elsewhere'
    {#- reads that lost are not remembered, and what they lost to has moved -#}
    when cdc_state.last_read_at is null then null
    when __cdc_stored.first_offset < __cdc_stored.kafka_offset then 'an earlier delivery of the stored event'
    when __cdc_unchanged_sequence > __cdc_sequence then 'a value of an unchanged column that is newer than the row'
    when size(carried_columns) > 0 and __cdc_lowest_offset < struct(__cdc_stored.topic_generation, __cdc_stored.first_offset)
        then 'a change of a lower offset: a read that lost to a carried value may stand behind it'
    when __cdc_part = 0 and op <> 'r' and source_epoch = __cdc_stored.sequence.source_epoch and (
        cdc_state.topic_generation < __cdc_stored.topic_generation or cdc_state.topic_generation = __cdc_stored.topic_generation
        and cdc_state.topic_partition = __cdc_stored.topic_partition and kafka_offset < __cdc_stored.first_offset
    ) then 'a newer change of a lower offset'
    {%- endif %}
    {%- endif %}
end
{%- endmacro %}
