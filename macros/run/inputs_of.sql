{#
    What a model reads, the bronze tables behind its staging models and other models: each with
    `name`, of a model its `relation`, and `upper`, up to which `ingest_batch` it can be read, by
    name: of a bronze table the run's bound, of a silver table what it has read of each of its
    own inputs. Not one number: an ingest commits a batch table by table, and a run may see it
    in one and not yet in another.
#}
{% macro inputs_of(node) -%}
    {%- set inputs = [] -%}
    {%- for id in node.depends_on.nodes if id in graph.nodes -%}
        {%- set parent = graph.nodes[id] -%}
        {%- for source in parent.sources or [] -%}
            {%- set upper = cdc_lakehouse.run_bounds().get(source[1], {}).get('upper', 0) -%}
            {%- do inputs.append({'name': source[1], 'upper': {source[1]: upper}}) -%}
        {%- else -%}
            {%- set upper = {} -%}
            {%- for name, value in cdc_lakehouse.progress(parent).items() if name[:8] == 'read_to.' -%}
                {%- do upper.update({parent.name ~ name[7:]: value | int}) -%}
            {%- endfor -%}
            {%- set relation = parent.schema ~ '.' ~ parent.alias -%}
            {%- do inputs.append({'name': parent.name, 'relation': relation, 'upper': upper}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(inputs) }}
{%- endmacro %}
