{# An event's place among those of its key, as a struct that compares (see folded_rows). #}
{% macro event_place() -%}
named_struct(
    'source_epoch', source_epoch,
    'position', case
        when op = 'r' and fold_first_offset is not null then fold_read_position
        else source_position
    end,
    'read_rank', case when op <> 'r' then 0 when fold_first_offset is null then -1 else 1 end,
    'topic_generation', topic_generation,
    'kafka_offset', fold_first_offset,
    'changed_at', changed_at,
    'op', op,
    'source_lsn', source_lsn,
    'topic_partition', topic_partition
)
{%- endmacro %}
