{{ config(enabled=var('cdc_lakehouse_history', false)) }}
{%- set as_of = "timestamp '" ~ var('as_of', '2999-12-31 00:00:00') ~ "'" %}

-- The orders as they were at a time of the source (docs/history.md), in UTC:
-- --vars '{cdc_lakehouse_history: true, as_of: "2026-01-31 12:00:00"}'.
-- Without it, as they are.
select
    order_id,
    customer_id,
    order_date,
    shipped_date

from {{ ref('orders_history') }}

where
    valid_from <= {{ as_of }}
    and (valid_to > {{ as_of }} or valid_to is null)

order by order_id
