{#
    The bronze tables that brought something in this run, each with what reads them: a list of
    mappings with `bronze`, `lower`, `upper`, `staging` (a node of the graph), `table` (its
    declaration) and `silver` (the node of the model that merges it).
#}
{% macro arrived_tables() -%}
    {%- set found = [] -%}
    {%- for row in run_query(
        'select bronze_table, lower_bound, upper_bound from ' ~ run_bounds_relation()
        ~ ' where upper_bound > lower_bound'
    ) -%}
        {%- for staging in graph.nodes.values() if staging.resource_type == 'model'
            and staging.sources == [['bronze', row[0]]] -%}
            {%- for silver in graph.nodes.values() if silver.resource_type == 'model'
                and silver.depends_on.nodes == [staging.unique_id] -%}
                {%- do found.append({
                    'bronze': row[0],
                    'lower': row[1] | int,
                    'upper': row[2] | int,
                    'staging': staging,
                    'table': change_table(staging.name, staging.config.meta),
                    'silver': silver,
                }) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}
