{#
    The columns of a table in its own order, for a select from a relation that replaces its
    rows: null for a column that the relation no longer has.
#}
{% macro target_columns(source_relation, target_relation) -%}
    {%- set given = adapter.get_columns_in_relation(source_relation) | map(attribute='name') | list -%}
    {%- set columns = [] -%}
    {%- for column in adapter.get_columns_in_relation(target_relation) -%}
        {%- if column.name in given -%}
            {%- do columns.append('`' ~ column.name ~ '`') -%}
        {%- else -%}
            {%- do columns.append('null as `' ~ column.name ~ '`') -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro %}
