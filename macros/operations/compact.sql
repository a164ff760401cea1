{# Merge the logs of a merge-on-read table, or of every one, into its files now. #}
{% macro compact(table=none) -%}
    {%- set tables = [table] if table else [] -%}
    {%- for node in graph.nodes.values() if not table and node.resource_type == 'model'
        and (node.config.get('tblproperties') or {}).get('type') == 'mor'
        and load_relation(api.Relation.create(schema=node.schema, identifier=node.alias)) -%}
        {%- do tables.append(node.schema ~ '.' ~ node.alias) -%}
    {%- endfor -%}
    {%- for name in tables -%}
        {%- set call = "call run_compaction(table => '" ~ name ~ "', op => " -%}
        {%- do run_query(call ~ "'schedule', options => 'hoodie.compact.inline.max.delta.commits=1')") -%}
        {#- also those that a killed one has left -#}
        {%- set done = run_query(call ~ "'run')") -%}
        {%- do run_query("call run_clean(table => '" ~ name ~ "')") -%}
        {%- set groups = done.rows | map(attribute='operation_size') | map('int') | sum -%}
        {{ print('compacted ' ~ name ~ ': ' ~ groups ~ ' file groups') }}
    {%- endfor -%}
{%- endmacro %}
