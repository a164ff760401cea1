{#
    The select list of stored versions in the columns that history_rows reads, but `last_event`.
    A column that the table does not have yet is null.
#}
{% macro _stored_versions(table) -%}
{%- set stored = cdc_lakehouse.stored_columns(this) -%}
{%- for column in table['columns'] %}
    {{ 'target.`%s`' % column if column in stored else 'null as `%s`' % column }},
{%- endfor %}
    {%- for column in cdc_lakehouse.history_columns() if column not in ['history_id', 'last_event'] %}
    target.{{ column }}{{ ',' if not loop.last }}
    {%- endfor %}
{%- endmacro %}
