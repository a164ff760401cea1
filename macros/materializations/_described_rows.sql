{#
    Of a relation's rows `types`, each column's type by name in order, and `found`, the values of
    some aggregates by name, in one statement.
#}
{% macro _described_rows(relation, aggregates) -%}
    {%- set row = run_query(
        'select typeof(first(struct(*))), ' ~ aggregates.values() | join(', ') ~ ' from ' ~ relation
    ).rows[0] -%}
    {%- set types = {} -%}
    {%- set parts = [] -%}
    {%- for part in row[0].removeprefix('struct<').removesuffix('>').split(',') -%}
        {%- do parts.append(part) -%}
        {%- set field = parts | join(',') -%}
        {%- if field.count('<') == field.count('>') and field.count('(') == field.count(')') -%}
            {%- set column, _, type = field.partition(':') -%}
            {%- do types.update({column: type}) -%}
            {%- do parts.clear() -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return({'types': types, 'found': dict(zip(aggregates, row.values()[1:]))}) }}
{%- endmacro %}
