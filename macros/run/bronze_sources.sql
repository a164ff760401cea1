{# The sources of the layer bronze that hold change events, and the quarantine last. #}
{% macro bronze_sources() -%}
    {{ return(
        graph.sources.values() | selectattr('source_name', 'equalto', 'bronze')
        | rejectattr('name', 'equalto', 'rejected_events') | list
        + (graph.sources.values() | selectattr('name', 'equalto', 'rejected_events') | list)
    ) }}
{%- endmacro %}
