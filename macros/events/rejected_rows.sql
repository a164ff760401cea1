{# The events without a usable key, for the model `rejected_rows`. #}
{% macro rejected_rows(staging_models) -%}
    {%- set read, bounds = [], cdc_lakehouse.run_bounds() -%}
    {%- set recorded = cdc_lakehouse.stored_table(this)['recorded'] if cdc_lakehouse.reads_increment() else {} -%}
    {%- for events in staging_models -%}
        {%- set bronze = cdc_lakehouse.change_table(events)['bronze'] -%}
        {%- set low, high = recorded.get('read_to.' ~ bronze, 0) | int, bounds.get(bronze, {}).get('upper', 0) -%}
        {%- do read.append((events, low, high)) if low < high or (loop.last and not read) -%}
    {%- endfor -%}
    {%- for events, low, high in read %} {#- few tasks, as each is sent what all tables are read with: hundreds are -#}
{{ 'select /*+ coalesce(16) */ * from (' if loop.first }}select
    event_id, '{{ events.identifier.removeprefix('stg_') }}' as table_name, rejection as reason,
    op, source_epoch, topic, kafka_partition, kafka_offset, changed_at, ingested_at, ingest_batch
from {{ events }}
where rejection is not null and {{ cdc_lakehouse._arrived_between(low, high) }}
    {{ ')' if loop.last else 'union all' }}
    {% endfor %}
{%- endmacro %}
