{# The rows of a silver table: of every key the newest version, deletes marked. #}
{% macro current_rows(events) -%}
{%- set table = cdc_lakehouse.table_in_run(events) -%}
{{ cdc_lakehouse._current_rows(table, '(' ~ cdc_lakehouse.row_states(
    cdc_lakehouse._run_events(events, table), table,
    stored=cdc_lakehouse._stored_rows(table) if table['is_kept']
) ~ ')') }}
{%- endmacro %}
