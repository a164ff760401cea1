{#
    The highest `ingest_batch` of a bronze table that every selected silver model has read: 0
    where a model's table does not exist. Models that are not selected are ignored; if no
    selected model reads the bronze table, the highest progress of any model.
#}
{% macro lowest_progress(bronze_table) -%}
    {%- set selected = [] -%}
    {%- set others = [0] -%}
    {%- for node in graph.nodes.values() if node.config.materialized == 'cdc_merge' -%}
        {%- for input in cdc_lakehouse.inputs_of(node)
            if input['name'] == bronze_table and input.get('relation') is none -%}
            {%- set relation = load_relation(api.Relation.create(
                schema=node.schema, identifier=node.alias
            )) -%}
            {%- set recorded = cdc_lakehouse.progress(relation) if relation else {} -%}
            {%- set read_to = recorded.get('read_to.' ~ bronze_table, 0) | int -%}
            {%- do (selected if node.unique_id in selected_resources else others).append(
                read_to
            ) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(selected | min if selected else others | max) }}
{%- endmacro %}
