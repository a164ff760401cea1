{#
    What a table has recorded: its properties that start with `lakehouse.`, without that prefix.
    Properties of the catalogue cost no commit, and dbt's cache of relations has them.
#}
{% macro progress(table) -%}
    {%- set relation = api.Relation.create(schema=table.schema, identifier=table.alias) if table.alias else table -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.progress', {}) -%}
    {%- if relation | string not in memory -%}
        {%- set recorded = modules.re.findall(
            'lakehouse\\.([^=]+)=(.*?)(?=, [\\w.-]+=|\\]\n)',
            (load_relation(relation) or {}).information or ''
        ) -%}
        {%- do memory.update({relation | string: dict(recorded)}) -%}
    {%- endif -%}
    {{ return(memory[relation | string]) }}
{%- endmacro %}
