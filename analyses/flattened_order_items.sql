-- One row for each line of each order, with what it came to.
select
    order_item_id,
    order_id,
    order_date,
    customer_id,
    company_name,
    product_id,
    product_name,
    unit_price,
    quantity,
    discount,
    revenue

from {{ ref('gold_order_items') }}

order by order_id, product_id, order_item_id
