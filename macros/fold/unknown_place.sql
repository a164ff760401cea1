{#
    The place of a carried value that no event has brought yet, of the type that event_place
    has. Not null: Spark's interpreted projections fail on a null struct in an array.
#}
{% macro unknown_place() -%}
named_struct(
    'source_epoch', cast(null as int),
    'position', cast(null as string),
    'read_rank', cast(null as int),
    'topic_generation', cast(null as int),
    'kafka_offset', cast(null as bigint),
    'changed_at', cast(null as timestamp),
    'op', cast(null as string),
    'source_lsn', cast(null as bigint),
    'topic_partition', cast(null as string)
)
{%- endmacro %}
