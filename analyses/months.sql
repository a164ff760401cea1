-- Revenue month by month, and how it grew against the month before.
select
    order_month,
    count_orders,
    count_items,
    revenue,
    revenue - lag(revenue) over (order by order_month) as growth

from {{ ref('revenue_by_month') }}

order by order_month
