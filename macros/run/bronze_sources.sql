{# The tables of the layer bronze that hold change events, by name, and the quarantine last. #}
{% macro bronze_sources() -%}
    {%- set sources = graph.sources.values() | selectattr('source_name', 'equalto', 'bronze') | list -%}
    {%- set quarantine = graph.sources.values() | selectattr('name', 'equalto', 'rejected_events') | list -%}
    {%- set tables = {} -%}
    {%- for source in sources | reject('in', quarantine) | list + quarantine -%}
        {%- do tables.update({source.name: source.schema ~ '.' ~ source.name}) -%}
    {%- endfor -%}
    {{ return(tables) }}
{%- endmacro %}
