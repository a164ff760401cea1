select
    items.product_id,
    products.product_name,
    categories.category_name,
    count(distinct items.order_id) as count_orders,
    sum(items.quantity) as total_quantity,
    sum(items.revenue) as revenue,
    round(sum(items.revenue) / nullif(sum(sum(items.revenue)) over (), 0), 10)
        as revenue_share,
    rank() over (order by sum(items.revenue) desc) as revenue_rank
from items
join datalake.products on items.product_id = products.product_id
left join datalake.categories on products.category_id = categories.category_id
group by items.product_id, products.product_name, categories.category_name
