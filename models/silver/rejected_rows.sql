{{ config(unique_key='event_id') }}

{# One line for each staging model. #}
{%- set change_tables = {
    'orders': ref('stg_orders'),
    'customers': ref('stg_customers'),
    'products': ref('stg_products'),
} %}

with

rejected as (

    {% for name, events in change_tables.items() %}

        select
            event_id,
            '{{ name }}' as table_name, -- noqa: RF04
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
            and {{ arrived_for_quarantine(events) }}

        {{ 'union all' if not loop.last }}

    {% endfor %}

)

select * from rejected
