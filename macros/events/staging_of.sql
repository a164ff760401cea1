{# The relation of the staging model that a silver model reads. #}
{% macro staging_of(node) -%}
    {%- for id in node.depends_on.nodes if id in graph.nodes and graph.nodes[id].sources -%}
        {%- set parent = graph.nodes[id] -%}
        {{ return(api.Relation.create(
            schema=parent.schema, identifier=parent.alias, type='view'
        )) }}
    {%- endfor -%}
{%- endmacro %}
