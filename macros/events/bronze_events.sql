{# A bronze table's events, a subquery, with the partition of the topic; null where offsets are unknown. #}
{% macro bronze_events(bronze) -%}
(
    select *, if(kafka_offset is null, null, concat_ws('/', topic, kafka_partition)) as topic_partition
    from {{ bronze }}
)
{%- endmacro %}
