select
    items.order_id || '-' || items.product_id as order_item_id,
    items.order_id,
    items.order_date,
    orders.shipped_date,
    coalesce(items.customer_id, 'unknown') as customer_id,
    customers.company_name,
    customers.country,
    nullif(concat_ws(' ', employees.first_name, employees.last_name), '') as employee_name,
    items.product_id,
    products.product_name,
    categories.category_name,
    order_details.unit_price::text::numeric as unit_price,
    items.quantity,
    order_details.discount::text::numeric as discount,
    items.revenue
from items
join datalake.order_details using (order_id, product_id)
join datalake.orders using (order_id)
left join datalake.customers on orders.customer_id = customers.customer_id
left join datalake.employees on orders.employee_id = employees.employee_id
left join datalake.products using (product_id)
left join datalake.categories using (category_id)
