{# The partition of the topic that a bronze event came in; null where offsets are unknown. #}
{% macro topic_partition() -%}
case when kafka_offset is not null then concat_ws('/', topic, kafka_partition) end
{%- endmacro %}
