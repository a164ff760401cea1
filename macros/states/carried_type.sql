{# The type of `carried_columns`. #}
{% macro carried_type() -%}
array<struct<
    column_name: string, is_known: boolean, sequence: struct<
        source_epoch: int, position: string, read_rank: int, topic_generation: int,
        kafka_offset: bigint, changed_at: timestamp, op: string, source_lsn: bigint,
        topic_partition: string
    >
>>
{%- endmacro %}
