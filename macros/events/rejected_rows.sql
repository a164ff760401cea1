{#
    The events of staging models that have no usable key, for the model `rejected_rows`. dbt must
    know what a model reads before it runs, so that the models are listed, each as `ref('…')`.
#}
{% macro rejected_rows(staging_models) -%}
    {%- for events in staging_models %}
    {%- set bronze = cdc_lakehouse.change_table(events)['bronze'] %}
select
    event_id,
    '{{ events.identifier.removeprefix('stg_') }}' as table_name,
    rejection as reason,
    op,
    source_epoch,
    topic,
    kafka_partition,
    kafka_offset,
    changed_at,
    ingested_at,
    ingest_batch

from {{ events }}

where
    rejection is not null
    and
    {% if cdc_lakehouse.reads_increment() -%}
        {{ cdc_lakehouse.arrived_in_this_run(bronze) }}
    {%- else -%}
        {{ cdc_lakehouse.arrived_until_this_run(bronze) }}
    {%- endif %}
    {{ 'union all' if not loop.last }}
    {% endfor %}
{%- endmacro %}
