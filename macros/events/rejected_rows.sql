{# The events without a usable key, for the model `rejected_rows`. dbt must know what a model reads before it
   runs: so the staging models are listed. #}
{% macro rejected_rows(staging_models) -%}
    {%- set bound = 'arrived' if cdc_lakehouse.reads_increment() else 'until' -%}
    {%- for events in staging_models %}
    {%- set table = cdc_lakehouse.table_in_run(events) %}
select
    event_id, '{{ events.identifier.removeprefix('stg_') }}' as table_name, rejection as reason,
    op, source_epoch, topic, kafka_partition, kafka_offset, changed_at, ingested_at, ingest_batch
from {{ events }}
where rejection is not null and {{ table[bound] }}
    {{ 'union all' if not loop.last }}
    {% endfor %}
{%- endmacro %}
