{#
    The rows of a silver table: of every key the newest version, deletes marked. The first build
    and a full refresh fold all of bronze; an increment what arrived and the stored rows of its
    keys; a complete snapshot that is not yet applied all of bronze and what is stored of before it.
#}
{% macro current_rows(events) -%}
{%- set table = cdc_lakehouse.change_table(events) -%}
{%- set is_increment = cdc_lakehouse.reads_increment() -%}
{%- set is_kept = not is_increment and cdc_lakehouse.keeps_rows() -%}
with
events as (
    {{ (cdc_lakehouse.arrived_events(events, table) if is_increment
        else cdc_lakehouse.change_history(events, table, is_kept=is_kept)) | indent(4) }}
),

{{ cdc_lakehouse._placed(
    table, stored=this if is_increment, gone=cdc_lakehouse._gone_rows(table) if is_kept
) }},

{{ cdc_lakehouse._last_states(table, is_increment) }}

{{ cdc_lakehouse._current_rows(table, 'last_states', is_increment=is_increment) }}
{%- endmacro %}
