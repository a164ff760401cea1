{#
    The rows of a silver table: of every key the newest version, deletes marked. The first build
    and a full refresh fold all of bronze, an increment what arrived and the stored rows of its
    keys.
#}
{% macro current_rows(events) -%}
{%- set table = cdc_lakehouse.change_table(events) -%}
{%- if execute -%}
    {%- do graph.setdefault('cdc_lakehouse.folds', {}).update({model.unique_id: table}) -%}
{%- endif -%}
{%- if not cdc_lakehouse.reads_increment() -%}
{{ cdc_lakehouse.folded_rows(cdc_lakehouse.change_history(events, table), table) }}
{%- else -%}
{%- set rows -%}
select
    target.`{{ table['key'] }}`, source_epoch,
    {#- of a read without one it is that of what it stands behind -#}
    if(op = 'r' and source_position <=> position_before_read, null, source_position) as source_position,
    changed_at, regexp_replace(topic_partition, '/[^/]*$', '') as topic, topic_generation,
    topic_partition, kafka_offset, null as fold_source_table
from {{ this }} as target
left anti join {{ events }} as events
    on target.`{{ table['key'] }}` = events.`{{ table['key'] }}`
{%- endset -%}
{{ cdc_lakehouse.folded_rows(cdc_lakehouse.arrived_events(events, table, rows), table, stored=this) }}
{%- endif -%}
{%- endmacro %}
