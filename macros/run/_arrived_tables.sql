{#
    After a run: the bronze tables that brought something, each with what has read them: a list
    of mappings with `bronze`, `lower`, `upper`, `staging` (a node of the graph), `table` (its
    declaration), `silver` (the node of the model that merges it) and `is_unchanged`, whether
    that changed no row. What this run did not merge, as it was not selected or failed, is for
    another. `lower` is where this model was before the run: others, which read the same and are
    behind, do not count.
#}
{% macro _arrived_tables() -%}
    {%- set found = [] -%}
    {%- set messages = {} -%}
    {%- for result in results if result.status == 'success' -%}
        {%- do messages.update({result.node.unique_id: result.message}) -%}
    {%- endfor -%}
    {%- for bronze_table, bounds in cdc_lakehouse.run_bounds().items() -%}
        {%- for staging in graph.nodes.values() if staging.resource_type == 'model'
            and staging.sources == [['bronze', bronze_table]] -%}
            {%- for silver in graph.nodes.values() if silver.resource_type == 'model'
                and silver.depends_on.nodes == [staging.unique_id]
                and silver.config.unique_key == staging.config.meta['key']
                and silver.unique_id in messages -%}
                {%- set read_from = graph.setdefault('cdc_lakehouse.read_from', {}).get(silver.unique_id, {}) -%}
                {%- set lower = read_from.get(bronze_table, bounds['upper']) -%}
                {%- if lower < bounds['upper'] -%}
                    {%- do found.append({
                        'bronze': bronze_table,
                        'lower': lower,
                        'upper': bounds['upper'],
                        'staging': staging,
                        'table': cdc_lakehouse.change_table(
                            api.Relation.create(schema=staging.schema, identifier=staging.alias)
                        ),
                        'silver': silver,
                        'is_unchanged': messages[silver.unique_id] == 'nothing new',
                    }) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}
