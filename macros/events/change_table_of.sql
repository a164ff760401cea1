{#
    The declaration that a staging model makes under `meta` (see change_table), for a model
    that reads it, and `bronze`, the bronze table that it reads. A stand-in while dbt parses,
    when there is no graph yet.
#}
{% macro change_table_of(events) -%}
    {%- set nodes = [] -%}
    {%- if execute -%}
        {%- for node in graph.nodes.values()
            if node.resource_type == 'model' and node.name.startswith('stg_')
            and node.name in events | string -%}
            {%- do nodes.append(node) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if nodes -%}
        {%- set node = nodes | sort(attribute='name') | last -%}
        {%- set table = cdc_lakehouse.change_table(node.name, node.config.meta) -%}
        {%- do table.update({'bronze': node.sources[0][1]}) -%}
        {{ return(table) }}
    {%- endif -%}
    {{ return({
        'key': 'key', 'columns': {'key': 'string'}, 'key_columns': [],
        'source_names': {'key': 'key'}, 'bronze': 'bronze'
    }) }}
{%- endmacro %}
