{#
    A table's columns, by name, with their types; of a nested type only `array`, `map` or
    `struct`. dbt's cache of relations has them.
#}
{% macro stored_columns(relation) -%}
    {%- set memory = graph.setdefault('cdc_lakehouse.columns', {}) -%}
    {%- if relation | string not in memory -%}
        {%- set names = {'byte': 'tinyint', 'integer': 'int', 'long': 'bigint', 'short': 'smallint'} -%}
        {%- set types = {} -%}
        {%- for column, type in modules.re.findall(
            '(?m)^ \\|-- (.+): (\\S+) \\(nullable', (load_relation(relation) or {}).information or ''
        ) if not column.startswith('_hoodie_') -%}
            {%- do types.update({column: names.get(type, type)}) -%}
        {%- endfor -%}
        {%- do memory.update({relation | string: types}) -%}
    {%- endif -%}
    {{ return(memory[relation | string]) }}
{%- endmacro %}
