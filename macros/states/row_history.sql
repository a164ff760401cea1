{#
    The rows of a history: of every key one row for each time between two changes (decision
    0020). The first build and a full refresh compute all of bronze; an increment what arrived and
    the last versions of its keys; a complete snapshot that is not yet applied all of bronze and what
    is stored of before it.
#}
{% macro row_history(events) -%}
{%- set table = cdc_lakehouse.change_table(events) -%}
{%- if execute -%}
    {%- set taken = table['columns'].keys() | select('in', cdc_lakehouse.history_columns()) | list -%}
    {%- if taken -%}
        {{ exceptions.raise_compiler_error(
            "model '" ~ model.name ~ "': " ~ events.identifier ~ ' declares the columns '
            ~ taken | join(', ') ~ ", which a history has of its own: give them other names there,"
            ~ " and the source's under 'source_names'"
        ) }}
    {%- endif -%}
{%- endif -%}
{%- set is_increment = cdc_lakehouse.reads_increment() -%}
{%- set is_kept = not is_increment and cdc_lakehouse.keeps_rows() -%}
{%- set states = cdc_lakehouse.row_states(
    cdc_lakehouse.arrived_events(events, table) if is_increment
    else cdc_lakehouse.change_history(events, table, is_kept=is_kept),
    table,
    versions=cdc_lakehouse._stored_versions(table, is_gone=is_kept) if is_increment or is_kept,
    is_increment=is_increment
) -%}
{{ cdc_lakehouse._history_rows(table, '(' ~ states ~ ')', is_increment=is_increment) }}
{%- endmacro %}
