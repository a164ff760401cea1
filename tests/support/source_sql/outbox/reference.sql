-- The outbox as the base tables have it, put together without any of its own SQL.
select
    orders.order_id,
    orders.customer_id,
    order_date,
    required_date,
    shipped_date,
    (
        select jsonb_agg(to_jsonb(line) - 'order_id' order by product_id)
        from order_details as line where line.order_id = orders.order_id
    ) as order_items,
    (
        select jsonb_agg(
            to_jsonb(suppliers) || to_jsonb(categories) || to_jsonb(products)
            order by product_id
        )
        from order_details as line join products using (product_id)
        join suppliers using (supplier_id) join categories using (category_id)
        where line.order_id = orders.order_id
    ) as products,
    to_jsonb(customers) as customer,
    to_jsonb(employees) || jsonb_build_object('territories', (
        select jsonb_agg(
            to_jsonb(territories) || to_jsonb(area) order by territory_id collate "C"
        )
        from employee_territories as its join territories using (territory_id)
        join region as area using (region_id)
        where its.employee_id = employees.employee_id
    )) as employee,
    to_jsonb(shippers) as shipper,
    to_jsonb(orders) - array[
        'order_id', 'customer_id', 'employee_id', 'ship_via', 'order_date',
        'required_date', 'shipped_date'
    ] as shipment
from orders
left join customers using (customer_id)
left join employees using (employee_id)
left join shippers on ship_via = shipper_id

