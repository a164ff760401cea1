{#
    The select list of events that no record brought: a value for each of event_columns, from
    `values` (SQL by column), null for the table's other columns, and else `otherwise`, SQL with
    `%s` for the column's name.
#}
{% macro _event_values(table, values, otherwise) -%}
{%- for column in cdc_lakehouse.event_columns(table) %}
    {%- if column in values %}
    {{ values[column] }}
    {%- elif column in table['columns'] %}
    null
    {%- else %}
    {{ otherwise | replace('%s', column) }}
    {%- endif %} as `{{ column }}`{{ ',' if not loop.last }}
{%- endfor %}
{%- endmacro %}
