{#
    The columns that follow a silver row's own, before `carried_columns`: which event the row
    comes from, and what the fold must remember of its key. Events have all of them but the last
    two.
#}
{% macro position_columns() -%}
    {{ return([
        'op', 'is_deleted', 'source_epoch', 'source_position', 'source_lsn',
        'topic_generation', 'topic_partition', 'kafka_offset', 'changed_at', 'ingested_at',
        'ingest_batch', 'untyped_columns', 'position_before_read', 'last_read_at'
    ]) }}
{%- endmacro %}
