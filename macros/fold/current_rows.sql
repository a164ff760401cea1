{#
    The rows of a silver table: of every key the newest version, deletes marked. The first
    build and a full refresh fold all of bronze, an increment what arrived and the stored rows
    of its keys. Used with the materialization cdc_merge.

    Args: `events`, the staging model (a relation), which declares key and columns.
#}
{% macro current_rows(events) -%}
{%- set table = cdc_lakehouse.change_table_of(events) -%}
{%- if execute and config.get('unique_key') not in [none, table['key']] -%}
    {{ exceptions.raise_compiler_error(
        "model '" ~ model.name ~ "': setting 'unique_key' is '" ~ config.get('unique_key')
        ~ "'; the key of its change table is '" ~ table['key'] ~ "'"
    ) }}
{%- endif -%}
{%- if cdc_lakehouse.reads_increment() -%}
{#- a table of an earlier version does not have what the fold remembers, or has rows that are
    older than the source's because of a value that its type could not hold -#}
{%- set stored = cdc_lakehouse.stored_columns(this) -%}
{%- if 'untyped_columns' not in stored or 'rejected_place' in stored -%}
    {%- do cdc_lakehouse.stop_at_type_change(
        this, 'untyped_columns', stored.get('untyped_columns', 'no column'), 'array<string>'
    ) -%}
{%- endif -%}
{{ cdc_lakehouse.folded_rows(cdc_lakehouse.arrived_events(events, table), table, stored=this) }}
{%- else -%}
{{ cdc_lakehouse.folded_rows(cdc_lakehouse.change_history(events, table), table) }}
{%- endif -%}
{%- endmacro %}
