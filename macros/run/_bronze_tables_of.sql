{# The names of the bronze tables that a node of the graph reads, itself or through others. #}
{% macro _bronze_tables_of(node) -%}
    {%- set names = (node.sources or []) | selectattr(0, 'equalto', 'bronze') | map('last') | list -%}
    {%- for id in node.depends_on.nodes or [] if id in graph.nodes -%}
        {%- do names.extend(cdc_lakehouse._bronze_tables_of(graph.nodes[id])) -%}
    {%- endfor -%}
    {{ return(names | unique | list) }}
{%- endmacro %}
