{{ config(enabled=var('cdc_lakehouse_history', false)) }}

-- How long orders waited to be shipped, and how often their lines changed, by month
-- (docs/history.md).
select
    order_month,
    count_placed,
    count_shipped,
    avg_hours_to_ship,
    count_changed,
    count_line_changes

from {{ ref('order_waits') }}

order by order_month
