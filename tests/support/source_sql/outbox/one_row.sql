-- Statements that write few rows, each of one table; a name in braces stands for a value.
-- The tests know the first five.
insert into orders (order_id, customer_id, employee_id, ship_via)
    values ({order}, '{customer}', {employee}, {shipper}) on conflict do nothing;
update orders set customer_id = '{customer}', employee_id = {employee}, ship_via = {shipper}
    where order_id = {order};
insert into order_details select order_id, {product}, 1, {number}, 0 from orders
    where order_id = {order} on conflict do nothing;
insert into employee_territories values ({employee}, '{territory}') on conflict do nothing;
delete from orders where order_id = {order};
update orders set customer_id = null, employee_id = null, ship_via = null
    where order_id = {order};
update orders set freight = {number} where order_id = {order};
update order_details set quantity = {number}
    where order_id = {order} and product_id = {product};
update order_details set product_id = 1 where order_id = {order} and product_id = {product};
delete from order_details where order_id = {order} and product_id = {product};
update customers set city = '{number}' where customer_id = '{customer}';
update employees set title = '{number}' where employee_id = {employee};
update shippers set phone = '{number}' where shipper_id = {shipper};
update products set units_in_stock = {number} where product_id = {product};
update products set supplier_id = {supplier} where product_id = {product};
update suppliers set city = '{number}' where supplier_id = {supplier};
update categories set description = '{number}' where category_id in
    (select category_id from products where product_id = {product});
delete from employee_territories
    where employee_id = {employee} and territory_id = '{territory}';
update employee_territories set employee_id = {employee} where territory_id = '{territory}';
update territories set territory_description = '{number}' where territory_id = '{territory}';
update territories set region_id = {region} where territory_id = '{territory}';
update region set region_description = '{number}' where region_id = {region};
update orders set shipped_date = date '1998-05-01' + {number} where order_id = {order};
update orders set ship_name = 'Käse & "Söhne" \ 木 {number}' where order_id = {order};
