{# What there is of a table: its columns, and what is recorded in its properties. #}
{% macro stored_table(table) -%}
    {%- set relation = api.Relation.create(schema=table.schema, identifier=table.alias or table.identifier) -%}
    {%- set memory, name = graph.setdefault('cdc_lakehouse.run', {}).setdefault('tables', {}), relation | string -%}
    {%- if name not in memory -%}
        {%- set text = (load_relation(relation) or {}).information or '' -%}
        {%- set columns, names = {}, {'byte': 'tinyint', 'integer': 'int', 'long': 'bigint', 'short': 'smallint'} -%}
        {%- for column, type in modules.re.findall('(?m)^ \\|-- (.+): (\\S+) \\(nullable', text)
            if column == '_hoodie_key' or not column.startswith('_hoodie_') -%}
            {%- do columns.update({column: names.get(type, type)}) -%}
        {%- endfor -%}
        {%- set recorded = modules.re.findall('lakehouse\\.([^=]+)=(.*?)(?=, [\\w.-]+=|\\]\n)', text) -%}
        {%- do memory.setdefault(name, {'columns': columns, 'recorded': dict(recorded)}) -%}
    {%- endif -%}
    {{ return(memory[name]) }}
{%- endmacro %}
