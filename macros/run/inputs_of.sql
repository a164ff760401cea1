{# The tables that a model reads, itself or through views and ephemeral models, and how far each can be read. #}
{% macro inputs_of(node) -%}
    {%- set inputs = [] -%}
    {%- for id in cdc_lakehouse.reads_of(node)['tables'] -%}
        {%- set table = graph.nodes.get(id) or graph.sources.get(id) or {'name': id, 'config': {}} -%}
        {%- set is_bronze, upper = table.source_name == 'bronze', {} -%}
        {%- if is_bronze -%}
            {%- do upper.update({table.name: cdc_lakehouse.run_bounds().get(table.name, {}).get('upper', 0)}) -%}
        {%- elif table.config.materialized in ['cdc_merge', 'cdc_history']
            and not cdc_lakehouse.inputs_of(table) | rejectattr('upper') | list -%}
            {%- for name, batch in cdc_lakehouse.stored_table(table)['recorded'].items() if 'read_to.' in name -%}
                {%- do upper.update({table.name ~ name.removeprefix('read_to'): batch | int}) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- set relation = api.Relation.create(schema=table.schema, identifier=table.alias or table.identifier) -%}
        {%- do inputs.append({
            'id': id, 'name': table.name, 'relation': relation, 'is_bronze': is_bronze, 'upper': upper}) -%}
    {%- endfor -%}
    {{ return(inputs) }}
{%- endmacro %}
