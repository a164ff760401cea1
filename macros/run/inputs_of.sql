{#
    What a silver model reads, each with `name` and, for a model, its `relation`: the bronze
    tables behind its staging models, and other silver models.
#}
{% macro inputs_of(node) -%}
    {%- set inputs = [] -%}
    {%- for id in node.depends_on.nodes if id in graph.nodes -%}
        {%- set parent = graph.nodes[id] -%}
        {%- for source in parent.sources or [] -%}
            {%- do inputs.append({'name': source[1]}) -%}
        {%- else -%}
            {%- do inputs.append({'name': parent.name, 'relation': api.Relation.create(
                schema=parent.schema, identifier=parent.alias, type='table'
            )}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(inputs) }}
{%- endmacro %}
