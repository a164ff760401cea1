-- One row for each line of each order, with what it came to.
select
    order_items.order_id,
    orders.order_date,
    order_items.customer_id,
    order_items.product_id,
    order_items.unit_price,
    order_items.quantity,
    order_items.discount,
    order_items.revenue

from {{ ref('order_items') }} as order_items

inner join {{ ref('orders') }} as orders
    on order_items.order_id = orders.order_id

where not order_items.is_deleted and not orders.is_deleted

order by order_items.order_id, order_items.product_id
