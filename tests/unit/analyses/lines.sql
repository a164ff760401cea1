-- The lines of all orders,
-- the last order first.
select order_id, product_id, revenue from {{ ref('order_items') }} order by order_id desc
