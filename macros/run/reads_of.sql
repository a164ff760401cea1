{# What a node of the graph reads, views and ephemeral models opened. #}
{% macro reads_of(node) -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.run', {}).setdefault('reads', {}) -%}
    {%- if node.unique_id in memory -%}{{ return(memory[node.unique_id]) }}{%- endif -%}
    {%- set read, parents = {'tables': {}, 'views': {}, 'bronze': {}}, node.get('depends_on', {}).get('nodes', []) -%}
    {#- a run of some tables leaves the rejected rows of all others as they are -#}
    {%- set selected = parents | select('in', selected_resources) | list
        if node.name == 'rejected_rows' and not flags.FULL_REFRESH and flags.WHICH != 'retry' else [] -%}
    {%- for id in selected or parents -%}
        {%- set parent = graph.nodes.get(id) or graph.sources.get(id, {}) -%}
        {%- set kind, behind = parent.get('config', {}).get('materialized'), cdc_lakehouse.reads_of(parent) -%}
        {%- set is_opened = kind in ['ephemeral', 'view', 'staging_view'] -%}
        {%- set itself = [parent.schema ~ '.' ~ parent.alias] if is_opened and kind != 'ephemeral' else [] -%}
        {#- a view of what dbt does not know of -#}
        {%- do read['tables'].update(dict.fromkeys(behind['tables'] if is_opened and behind['tables'] else [id])) -%}
        {%- do read['views'].update(dict.fromkeys(behind['views'] | list + itself if is_opened else [])) -%}
        {%- do read['bronze'].update(dict.fromkeys([parent.name] if parent.source_name == 'bronze' else behind['bronze'])) -%}
    {%- endfor -%}
    {{ return(memory.setdefault(node.unique_id, read)) }}
{%- endmacro %}
