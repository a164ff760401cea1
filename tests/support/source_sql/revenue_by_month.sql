select
    coalesce(date_trunc('month', order_date)::date, '1900-01-01') as order_month,
    count(distinct order_id) as count_orders,
    count(*) as count_items,
    sum(revenue) as revenue
from items
group by coalesce(date_trunc('month', order_date)::date, '1900-01-01')
