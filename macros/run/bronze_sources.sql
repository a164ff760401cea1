{# The tables of the layer bronze by name, of change events and the quarantine. #}
{% macro bronze_sources() -%}
    {%- set tables = {} -%}
    {%- for source in graph.sources.values() if source.source_name == 'bronze' or source.name == 'rejected_events' -%}
        {%- do tables.update({source.name: source.schema ~ '.' ~ source.name}) -%}
    {%- endfor -%}
    {{ return(tables) }}
{%- endmacro %}
