{#
    What a node of the graph reads, views and ephemeral models opened: `tables`, the ids of all
    else, and `views`, the relations of the views.
#}
{% macro _reads(node) -%}
    {%- set read = {'tables': [], 'views': []} -%}
    {%- for id in node.depends_on.nodes or [] -%}
        {%- set parent = graph.nodes.get(id, {}) -%}
        {%- set kind = parent.get('config', {}).get('materialized') -%}
        {%- set behind = cdc_lakehouse._reads(parent) if kind in ['ephemeral', 'view', 'staging_view'] else {} -%}
        {#- a view of what dbt does not know of -#}
        {%- do read['tables'].extend(behind.get('tables') or [id]) -%}
        {%- if kind in ['view', 'staging_view'] -%}
            {%- do read['views'].extend(behind['views'] + [parent.schema ~ '.' ~ parent.alias]) -%}
        {%- else -%}
            {%- do read['views'].extend(behind.get('views', [])) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return({'tables': read['tables'] | unique | list, 'views': read['views'] | unique | list}) }}
{%- endmacro %}
