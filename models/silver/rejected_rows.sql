{{ config(unique_key='event_id') }}

{# One line for each staging model (stop_at_unlisted_model checks it). #}
{%- set change_tables = {
    'orders': ref('stg_orders'),
    'customers': ref('stg_customers'),
    'products': ref('stg_products'),
} %}
{%- if var('base_tables') %}
{%- do change_tables.update({
    'categories': ref('stg_categories'),
    'employee_territories': ref('stg_employee_territories'),
    'employees': ref('stg_employees'),
    'order_details': ref('stg_order_details'),
    'order_headers': ref('stg_order_headers'),
    'regions': ref('stg_regions'),
    'shippers': ref('stg_shippers'),
    'suppliers': ref('stg_suppliers'),
    'territories': ref('stg_territories'),
}) %}
{%- endif %}

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
