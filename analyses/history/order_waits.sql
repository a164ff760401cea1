{{ config(enabled=var('cdc_lakehouse_history', false)) }}

-- By the month in which orders were placed: how long they waited to be shipped, and how
-- often their lines changed after they were placed (docs/history.md).
with

versions as (

    select
        order_id,
        valid_from,
        shipped_date,
        coalesce(order_items <> lag(order_items) over (
            partition by order_id order by version_number
        ), false) as are_lines_changed

    from {{ ref('orders_history') }}

    where op <> 'd'

),

orders as (

    select
        order_id,
        min(valid_from) as placed_at,
        min(case when shipped_date is not null then valid_from end) as shipped_at,
        count(case when are_lines_changed then 1 end) as count_line_changes

    from versions

    group by order_id

)

select
    date_format(placed_at, 'yyyy-MM') as placed_month,

    count(*) as count_orders,
    count(shipped_at) as count_shipped,
    round(
        avg(unix_timestamp(shipped_at) - unix_timestamp(placed_at)) / 3600, 1
    ) as avg_hours_to_ship,
    count(case when count_line_changes > 0 then 1 end) as count_orders_changed,
    sum(count_line_changes) as count_line_changes

from orders

group by date_format(placed_at, 'yyyy-MM')

order by placed_month
