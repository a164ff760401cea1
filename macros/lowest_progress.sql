{#
    Up to which `ingest_batch` every silver model that reads a bronze table has read it: 0
    as long as one of them has not been built.
#}
{% macro lowest_progress(bronze_table) -%}
    {%- set batches = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'incremental' -%}
        {%- for input in inputs_of(node) if input['name'] == bronze_table and input.get('relation') is none -%}
            {%- set relation = load_relation(api.Relation.create(
                schema=node.schema, identifier=node.alias
            )) -%}
            {%- set recorded = progress(relation) if relation else {} -%}
            {%- do batches.append(recorded.get('read_to.' ~ bronze_table, 0) | int) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(batches | min if batches else 0) }}
{%- endmacro %}
