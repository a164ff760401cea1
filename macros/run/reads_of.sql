{# What a node of the graph reads, views and ephemeral models opened. #}
{% macro reads_of(node) -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.run', {}).setdefault('reads', {}) -%}
    {%- if node.unique_id in memory -%}{{ return(memory[node.unique_id]) }}{%- endif -%}
    {%- set read = {'tables': [], 'views': [], 'bronze': []} -%}
    {%- for id in node.get('depends_on', {}).get('nodes', []) -%}
        {%- set parent = graph.nodes.get(id) or graph.sources.get(id, {}) -%}
        {%- set kind = parent.get('config', {}).get('materialized') -%}
        {%- set behind = cdc_lakehouse.reads_of(parent) -%}
        {%- set is_opened = kind in ['ephemeral', 'view', 'staging_view'] -%}
        {%- set itself = [parent.schema ~ '.' ~ parent.alias] if is_opened and kind != 'ephemeral' else [] -%}
        {#- a view of what dbt does not know of -#}
        {%- do read['tables'].extend(behind['tables'] if is_opened and behind['tables'] else [id]) -%}
        {%- do read['views'].extend(behind['views'] + itself if is_opened else []) -%}
        {%- do read['bronze'].extend([parent.name] if parent.source_name == 'bronze' else behind['bronze']) -%}
    {%- endfor -%}
    {{ return(memory.setdefault(node.unique_id, {
        'tables': read['tables'] | unique | list, 'views': read['views'] | unique | list,
        'bronze': read['bronze'] | unique | list
    })) }}
{%- endmacro %}
