{{ config(enabled=var('cdc_lakehouse_history', false)) }}
{%- set low = "timestamp '" ~ var('changed_from', '1900-01-01 00:00:00') ~ "'" %}
{%- set high = "timestamp '" ~ var('changed_to', '2999-12-31 00:00:00') ~ "'" %}

-- The versions of orders that began or ended between two times of the source
-- (docs/history.md), in UTC: --vars '{cdc_lakehouse_history: true, changed_from: …,
-- changed_to: …}'. Without them, all.
select
    order_id,
    op,
    customer_id,
    shipped_date,
    valid_from,
    valid_to

from {{ ref('orders_history') }}

where
    (valid_from > {{ low }} and valid_from <= {{ high }})
    or (valid_to > {{ low }} and valid_to <= {{ high }})

order by order_id, version_number
