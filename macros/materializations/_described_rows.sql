{#
    Of a relation's rows `types`, each column's type by name in order, and `values`, those of
    some aggregates, in one statement.
#}
{% macro _described_rows(relation, aggregates) -%}
    {%- set row = run_query(
        'select typeof(first(struct(*))), ' ~ aggregates ~ ' from ' ~ relation
    ).rows[0] -%}
    {%- set types = {} -%}
    {%- set at = namespace(depth=0, field='') -%}
    {%- for character in row[0].removeprefix('struct<').removesuffix('>') ~ ',' -%}
        {%- set at.depth = at.depth + {'<': 1, '(': 1, '>': -1, ')': -1}.get(character, 0) -%}
        {%- if character == ',' and at.depth == 0 -%}
            {%- set column, _, type = at.field.partition(':') -%}
            {%- do types.update({column: type}) -%}
            {%- set at.field = '' -%}
        {%- else -%}
            {%- set at.field = at.field ~ character -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return({'types': types, 'values': row.values()[1:]}) }}
{%- endmacro %}
