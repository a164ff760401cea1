{#
    The order of the versions of one key, oldest first, for an `order by`.

    A snapshot read has been given the position of the streamed event it follows
    (see newest_versions); `read_rank` then puts it before or after that event. What still
    ties is the same event twice; the rest only makes the choice the same every time.
#}
{% macro position_order() -%}
    source_epoch asc nulls first,
    position_lsn asc nulls first,
    read_rank asc,
    kafka_offset asc nulls first,
    changed_at asc nulls first,
    event_id asc
{%- endmacro %}
