{#
    The declaration that a staging model makes under `meta` (see change_table), for a model
    that reads it, and `bronze`, the bronze table that it reads. A stand-in while dbt parses,
    when there is no graph yet.
#}
{% macro change_table_of(events) -%}
    {%- if execute -%}
        {%- for node in graph.nodes.values() if node.resource_type == 'model'
            and (node.schema, node.alias) == (events.schema, events.identifier) -%}
            {%- set table = cdc_lakehouse.change_table(node.name, node.config.meta) -%}
            {%- do table.update({'bronze': node.sources[0][1]}) -%}
            {{ return(table) }}
        {%- endfor -%}
    {%- endif -%}
    {{ return({
        'key': 'key', 'columns': {'key': 'string'}, 'key_columns': [],
        'source_names': {'key': 'key'}, 'bronze': 'bronze'
    }) }}
{%- endmacro %}
