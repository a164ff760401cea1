{#
    The statement that replaces all rows of a table, in one commit: by position, so in the
    table's own order of columns, with null for a column that the rows no longer have.
#}
{% macro overwrite_statement(target, rows, types) -%}
{%- set columns = [] -%}
{%- for column in stored_columns(target) -%}
    {%- do columns.append(('' if column in types else 'null as ') ~ '`' ~ column ~ '`') -%}
{%- endfor -%}
insert overwrite table {{ target }}
select {{ columns | join(', ') }}
from {{ rows }}
{%- endmacro %}
