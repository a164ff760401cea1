{#
    What a silver model reads: the bronze tables behind its staging models, and other silver
    models. Each is a mapping with `name` and, for a model, its `relation`.
#}
{% macro inputs_of(node) -%}
    {%- set inputs = [] -%}
    {%- for id in node.depends_on.nodes if id in graph.nodes -%}
        {%- set parent = graph.nodes[id] -%}
        {%- for source in parent.sources or [] -%}
            {%- do inputs.append({'name': source[1]}) -%}
        {%- else -%}
            {%- do inputs.append({
                'name': parent.name,
                'relation': api.Relation.create(
                    schema=parent.schema, identifier=parent.alias, type='table'
                )
            }) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(inputs) }}
{%- endmacro %}
