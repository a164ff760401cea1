select
    coalesce(items.customer_id, 'unknown') as customer_id,
    customers.company_name,
    customers.country,
    count(distinct items.order_id) as count_orders,
    count(*) as count_items,
    sum(items.quantity) as total_quantity,
    sum(items.revenue) as revenue,
    round(sum(items.revenue) / nullif(sum(sum(items.revenue)) over (), 0), 10)
        as revenue_share,
    rank() over (order by sum(items.revenue) desc) as revenue_rank,
    round(sum(items.quantity) / count(distinct items.order_id), 4) as avg_order_quantity,
    round(sum(items.revenue) / count(distinct items.order_id), 4) as avg_order_revenue,
    round(sum(items.quantity) / count(*), 4) as avg_item_quantity,
    round(sum(items.revenue) / count(*), 4) as avg_item_revenue,
    case
        when
            count(distinct items.order_id) < avg(count(distinct items.order_id)) over ()
            and round(sum(items.revenue) / count(*), 4)
            > round(sum(sum(items.revenue)) over () / sum(count(*)) over (), 4)
            then 'rarely and well'
        else 'otherwise'
    end as buys
from items
left join datalake.customers on items.customer_id = rtrim(customers.customer_id)
group by coalesce(items.customer_id, 'unknown'), customers.company_name, customers.country
