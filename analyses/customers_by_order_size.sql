-- What an order of each customer comes to: units against money, by number of orders.
select
    customer_id,
    company_name,
    count_orders,
    count_items,
    total_quantity,
    avg_order_quantity,
    avg_order_revenue

from {{ ref('revenue_by_customer') }}

order by avg_order_revenue desc, customer_id asc
