{#
    The select list of deletes that no record brought: each of event_columns from `values` (SQL
    by column), null for the table's columns but the key, else `otherwise` (SQL with `%s` for the
    column's name).
#}
{% macro _event_values(table, key, values, otherwise) -%}
{%- set given = {
    'is_deleted': 'true',
    'topic_partition': 'cast(null as string)',
    'kafka_offset': 'cast(null as bigint)',
    'unavailable_columns': 'cast(array() as array<string>)',
    'untyped_columns': 'cast(null as array<string>)',
    'fields': 'cast(null as array<string>)',
    'position_before_read': 'cast(null as string)',
    table['key']: key,
} -%}
{%- do given.update(values) -%}
{%- for column in cdc_lakehouse.event_columns(table) %}
    {{ given.get(column, 'null' if column in table['columns'] else otherwise | replace('%s', column)) }}
    as `{{ column }}`{{ ',' if not loop.last }}
{%- endfor %}
{%- endmacro %}
