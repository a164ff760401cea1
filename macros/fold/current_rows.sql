{#
    The rows of a silver table: of every key the newest version, deletes marked. The first
    build and a full refresh fold all of bronze, an increment what arrived and the stored rows
    of its keys. Used with the materialization cdc_merge.

    Args: `events`, the staging model (a relation), which declares key and columns.
#}
{% macro current_rows(events) -%}
{%- set table = change_table_of(events) -%}
{%- if execute and config.get('unique_key') not in [none, table['key']] -%}
    {{ exceptions.raise_compiler_error(
        "model '" ~ model.name ~ "': setting 'unique_key' is '" ~ config.get('unique_key')
        ~ "'; the key of its change table is '" ~ table['key'] ~ "'"
    ) }}
{%- endif -%}
{%- if reads_increment() -%}
{#- a table of an earlier version does not have what the fold remembers -#}
{%- set carried = stored_columns(this).get('carried_columns', 'no column') -%}
{%- if 'place' not in carried -%}
    {%- do stop_at_type_change(this, 'carried_columns', carried, 'array<struct<…>>') -%}
{%- endif -%}
{{ folded_rows(arrived_events(events, table), table, stored=this) }}
{%- else -%}
{{ folded_rows(change_history(events, table), table) }}
{%- endif -%}
{%- endmacro %}
