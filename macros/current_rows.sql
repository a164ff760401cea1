{#
    The rows of a silver table: of every key the newest version, deletes marked.

    The first build and a full refresh read all of bronze. An increment reads what arrived,
    compares it with the stored rows, and yields the rows that have become newer. A key
    whose standing is unclear yields one row with the operation `?`, and is folded again from
    its whole history (see settled_rows).
#}
{% macro current_rows(events) -%}
{%- set table = change_table_of(events) -%}
{%- if execute and config.get('unique_key') != table['key'] -%}
    {{ exceptions.raise_compiler_error(
        "model '" ~ model.name ~ "': setting 'unique_key' is '" ~ config.get('unique_key')
        ~ "'; the key of its change table is '" ~ table['key'] ~ "'"
    ) }}
{%- endif -%}
{%- if nothing_arrived() -%}
select * from {{ this }}
where false
{%- elif reads_increment() -%}
{{ increment_rows(events, table) }}
{%- else -%}
with

history as (

    {{ change_history(events, table) | indent(4) }}

),

{{ newest_versions('history', table) }},

current_versions as (

    select
        {{ row_columns(table, unknown_in_life='?') }}

    from history_newest

)

select * from current_versions
{%- endif -%}
{%- endmacro %}
