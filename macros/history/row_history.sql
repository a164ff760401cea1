{#
    The rows of a history: of every key one row for each time between two changes (decision
    0020). The first build and a full refresh compute all of bronze, an increment what arrived and
    the last versions of its keys. A complete snapshot that is not yet applied has all keys computed
    again, with what is stored of before bronze.
#}
{% macro row_history(events) -%}
{%- set table = cdc_lakehouse.change_table(events) -%}
{%- if execute -%}
    {%- do graph.setdefault('cdc_lakehouse.histories', {}).update({model.unique_id: table}) -%}
    {%- set taken = table['columns'].keys() | select('in', cdc_lakehouse.history_columns()) | list -%}
    {%- if taken -%}
        {{ exceptions.raise_compiler_error(
            "model '" ~ model.name ~ "': " ~ events.identifier ~ ' declares the columns '
            ~ taken | join(', ') ~ ", which a history has of its own: give them other names there,"
            ~ " and the source's under 'source_names'"
        ) }}
    {%- endif -%}
{%- endif -%}
{%- if cdc_lakehouse.reads_increment() -%}
{%- set begun -%}
select
    target.`{{ table['key'] }}`, from_epoch as source_epoch, from_position as source_position,
    valid_from as changed_at,
    regexp_replace(last_event.place.topic_partition, '/[^/]*$', '') as topic,
    null as topic_generation, null as topic_partition, null as kafka_offset, null as fold_source_table
from {{ this }} as target
left anti join {{ events }} as events
    on
        target.`{{ table['key'] }}` = events.`{{ table['key'] }}`
        and target.from_epoch = events.source_epoch
        and target.from_position <=> events.source_position
{%- endset -%}
{{ cdc_lakehouse.history_rows(
    cdc_lakehouse.arrived_events(events, table, begun), table,
    stored=cdc_lakehouse._last_versions(table), is_increment=true
) }}
{%- else -%}
{%- set history = cdc_lakehouse.change_history(events, table) -%}
{%- if not execute or should_full_refresh() or not load_relation(this) -%}
{{ cdc_lakehouse.history_rows(history, table) }}
{%- else -%}
{%- set missing = cdc_lakehouse._missing_versions(
    events, table, cdc_lakehouse.complete_snapshots(table['bronze'])
) -%}
{{ cdc_lakehouse.history_rows(
    history ~ ' union all ' ~ missing, table, stored=cdc_lakehouse._dropped_versions(table)
) }}
{%- endif -%}
{%- endif -%}
{%- endmacro %}
