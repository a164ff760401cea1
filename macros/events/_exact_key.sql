{# Kafka's key, of which Spark's JSON rounds no number: a string is the same text, and not rounded. #}
{% macro _exact_key() -%}
{%- set numbers = cdc_lakehouse._number_patterns() -%}
if(
    key rlike '{{ numbers['short_numbers'] }}', key,
    regexp_replace(key, '{{ numbers['up_to_long_number'] }}', '$1"$2"')
)
{%- endmacro %}
