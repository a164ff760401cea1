{{ config(enabled=var('cdc_lakehouse_history', false)) }}

-- What happened to one order, version by version (docs/history.md):
-- --vars '{cdc_lakehouse_history: true, order_id: 10248}'.
select
    version_number,
    op,
    valid_from,
    valid_to,
    from_position,
    customer_id,
    shipped_date

from {{ ref('orders_history') }}

where order_id = {{ var('order_id', 10248) }}

order by version_number
