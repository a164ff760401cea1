{# The tables, by schema and name, that the project's models keep as merge-on-read. #}
{% macro merge_on_read_tables() -%}
    {%- set tables = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model'
        and (node.config.get('tblproperties') or {}).get('type') == 'mor' -%}
        {%- if load_relation(api.Relation.create(schema=node.schema, identifier=node.alias)) -%}
            {%- do tables.append(node.schema ~ '.' ~ node.alias) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(tables) }}
{%- endmacro %}
