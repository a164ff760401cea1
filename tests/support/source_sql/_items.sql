-- The order lines as money: what the other questions are asked of.
create temporary view items as
select
    order_details.order_id,
    order_details.product_id,
    rtrim(orders.customer_id) as customer_id,
    orders.employee_id,
    orders.order_date,
    order_details.quantity::numeric as quantity,
    round(
        order_details.unit_price::text::numeric
        * order_details.quantity
        * (1 - order_details.discount::text::numeric),
        4
    ) as revenue
from datalake.order_details
join datalake.orders on order_details.order_id = orders.order_id
