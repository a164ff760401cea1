{#
    The tables that a model reads, itself or through views and ephemeral models: each with `id`,
    `name`, `relation`, `is_bronze`, and `upper`, up to which `ingest_batch` it can be read, by
    name: of a bronze table the run's bound, of a silver table what it has read of each of its own
    inputs. Not one number: an ingest commits a batch table by table, and a run may see it in one
    and not yet in another. Empty where no number tells what is new: of every other table, and of
    a silver table that reads one.
#}
{% macro inputs_of(node) -%}
    {%- set inputs = [] -%}
    {%- for id in cdc_lakehouse._reads(node)['tables'] -%}
        {%- set table = graph.nodes.get(id) or graph.sources.get(id) or {'name': id, 'config': {}} -%}
        {%- set is_bronze = table.source_name == 'bronze' -%}
        {%- set upper = {} -%}
        {%- if is_bronze -%}
            {%- do upper.update({table.name: cdc_lakehouse.run_bounds().get(table.name, {}).get('upper', 0)}) -%}
        {%- elif table.config.materialized in ['cdc_merge', 'cdc_history'] -%}
            {%- set behind = cdc_lakehouse.inputs_of(table) -%}
            {%- for name, value in cdc_lakehouse.progress(table).items()
                if name[:8] == 'read_to.' and behind | selectattr('upper') | list == behind -%}
                {%- do upper.update({table.name ~ name[7:]: value | int}) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do inputs.append({
            'id': id, 'name': table.name, 'is_bronze': is_bronze, 'upper': upper,
            'relation': api.Relation.create(schema=table.schema, identifier=table.alias or table.identifier)
        }) -%}
    {%- endfor -%}
    {{ return(inputs) }}
{%- endmacro %}
