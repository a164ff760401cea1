{# The type of a place (see folded_rows), as the text that a cast takes. #}
{% macro _place_type() -%}
struct<
    source_epoch: int,
    position: string,
    read_rank: int,
    topic_generation: int,
    kafka_offset: bigint,
    changed_at: timestamp,
    op: string,
    source_lsn: bigint,
    topic_partition: string
>
{%- endmacro %}
