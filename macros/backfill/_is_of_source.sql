{#
    True where an event is of the topic and the source table of a truncate, or does not say. An
    earlier version of the ingest wrote a table's name without its schema.
#}
{% macro _is_of_source(event, truncate) -%}
coalesce({{ event }}.topic = {{ truncate }}.topic, true)
and coalesce(
    endswith(concat('.', {{ event }}.__cdc_source_table), concat('.', {{ truncate }}.__cdc_source_table))
    or endswith(concat('.', {{ truncate }}.__cdc_source_table), concat('.', {{ event }}.__cdc_source_table)),
    true
)
{%- endmacro %}
