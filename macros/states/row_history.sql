{# The rows of a history: of every key one row for each time between two changes (decision 0020). #}
{% macro row_history(events) -%}
{%- set table = cdc_lakehouse.table_in_run(events) -%}
{%- set taken = table['columns'].keys() | select('in', [
    'history_id', 'valid_from', 'valid_to', 'is_current', 'op', 'from_epoch', 'from_position',
    'to_epoch', 'to_position', 'version_number', 'untyped_columns', 'ingest_batch', 'cdc_state']) | list -%}
{%- if taken -%}
    {{ exceptions.raise_compiler_error(
        "model '" ~ model.name ~ "': " ~ events.identifier ~ ' declares the columns '
        ~ taken | join(', ') ~ ", which a history has of its own: give them other names there,"
        ~ " and the source's under 'source_names'"
    ) }}
{%- endif -%}
{{ cdc_lakehouse._history_rows(table, '(' ~ cdc_lakehouse.row_states(
    cdc_lakehouse._run_events(events, table), table,
    stored=cdc_lakehouse._stored_versions(table) if table['is_kept']
) ~ ')') }}
{%- endmacro %}
