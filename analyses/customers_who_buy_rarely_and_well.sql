-- Customers of fewer orders than the average whose lines come to more than the average.
with

customers as (

    select
        customer_id,
        company_name,
        count_orders,
        avg_item_quantity,
        avg_item_revenue,
        avg(count_orders) over () as avg_orders,
        sum(revenue) over () / sum(count_items) over () as avg_revenue

    from {{ ref('revenue_by_customer') }}

)

select
    customer_id,
    company_name,
    count_orders,
    avg_item_quantity,
    avg_item_revenue

from customers

where count_orders < avg_orders and avg_item_revenue > avg_revenue

order by avg_item_revenue desc, customer_id asc
