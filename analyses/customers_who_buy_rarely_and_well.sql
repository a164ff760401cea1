-- Customers of fewer orders than the average whose lines come to more than the average.
select
    customer_id,
    company_name,
    count_orders,
    avg_item_quantity,
    avg_item_revenue

from {{ ref('revenue_by_customer') }}

where buys = 'rarely and well'

order by avg_item_revenue desc, customer_id asc
