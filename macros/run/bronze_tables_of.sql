{# The names of the bronze tables that a silver model reads, or its silver inputs read. #}
{% macro bronze_tables_of(node) -%}
    {%- set names = [] -%}
    {%- for input in cdc_lakehouse.inputs_of(node) -%}
        {%- if input.get('relation') is none -%}
            {%- do names.append(input['name']) -%}
        {%- else -%}
            {%- for parent in graph.nodes.values()
                if parent.resource_type == 'model' and parent.name == input['name'] -%}
                {%- do names.extend(cdc_lakehouse.bronze_tables_of(parent)) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(names | unique | list) }}
{%- endmacro %}
