{#
    The select list of events that no record brought: each of event_columns from `values` (SQL
    by column), null for the table's other columns, else `otherwise` (SQL with `%s` for the
    column's name).
#}
{% macro _event_values(table, values, otherwise) -%}
{%- do values.update({
    'unavailable_columns': 'cast(array() as array<string>)',
    'untyped_columns': 'cast(null as array<string>)',
    'fields': 'cast(null as array<string>)',
}) -%}
{%- for column in cdc_lakehouse.event_columns(table) %}
    {{ values.get(column, 'null' if column in table['columns'] else otherwise | replace('%s', column)) }}
    as `{{ column }}`{{ ',' if not loop.last }}
{%- endfor %}
{%- endmacro %}
