{#
    What a table has recorded: its properties that start with `lakehouse.`, without that prefix.
    Properties of the catalogue cost no commit, and dbt's cache of relations has them.
#}
{% macro progress(relation) -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.progress', {}) -%}
    {%- if relation | string not in memory -%}
        {%- set recorded = {} -%}
        {%- for name, value in modules.re.findall(
            'lakehouse\\.([^=]+)=(.*?)(?=, [\\w.-]+=|\\]\n)',
            (load_relation(relation) or {}).information or ''
        ) -%}
            {%- do recorded.update({name: value}) -%}
        {%- endfor -%}
        {%- do memory.update({relation | string: recorded}) -%}
    {%- endif -%}
    {{ return(memory[relation | string]) }}
{%- endmacro %}
