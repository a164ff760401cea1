-- Statements that write more rows, or keys, or nothing that an order shows.
update order_details set order_id = {another} where order_id = {order};
with lines as (delete from order_details where order_id = {order} returning *)
    insert into order_details select * from lines;
with lines as (
    update order_details set quantity = {number} where order_id = {order} returning *
) update orders set freight = {number} where order_id = {another};
merge into orders using (
    values ({order}, 'delete'), ({another}, 'update'), (11080, 'insert')
) as wanted (id, what) on order_id = id
    when matched and what = 'delete' then delete
    when matched then update set freight = {number}
    when not matched then insert (order_id) values (id);
update orders set freight = freight;
update products set product_name = product_name;
insert into customers values ('{number}', 'Nobody') on conflict do nothing;
delete from customers where customer_id = '{number}';
update orders set order_id = order_id + 100 where order_id = {order};
update orders set order_id = order_id - 100 where order_id = {order} + 100;
update customers set customer_id = reverse(customer_id)
    where customer_id in ('CENTC', 'CTNEC');
update employees set employee_id = 55 - employee_id where employee_id in (5, 50);
update shippers set shipper_id = 33 - shipper_id where shipper_id in (3, 30);
update products set product_id = 131 - product_id where product_id in (11, 120);
update territories set territory_id = '0' where territory_id = '02903';
update territories set territory_id = '02903' where territory_id = '0';
call fill_cdc_events();
