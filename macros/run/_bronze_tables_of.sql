{# The names of the bronze tables that a node of the graph reads, itself or through others. #}
{% macro _bronze_tables_of(node) -%}
    {%- set names = [] -%}
    {%- for source in node.sources or [] if source[0] == 'bronze' -%}
        {%- do names.append(source[1]) -%}
    {%- endfor -%}
    {%- for id in node.depends_on.nodes or [] if id in graph.nodes -%}
        {%- do names.extend(cdc_lakehouse._bronze_tables_of(graph.nodes[id])) -%}
    {%- endfor -%}
    {{ return(names | unique | list) }}
{%- endmacro %}
