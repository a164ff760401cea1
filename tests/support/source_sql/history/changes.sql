insert into shop.orders values ({key}, {customer}, shop.new_body(), {cents} / 100.0)
    on conflict do nothing;
insert into shop.orders values ({other}, {customer}, shop.new_body(), {cents} / 100.0)
    on conflict do nothing;
update shop.orders set amount = amount + 1 where order_id = {key};
update shop.orders set amount = amount + 2 where order_id = {other};
update shop.orders set customer = null where order_id = {key};
update shop.orders set body = shop.new_body() where order_id = {key};
update shop.orders set body = body where order_id = {key};
update shop.orders set amount = amount + 1 where order_id = {key}
-- then
update shop.orders set body = shop.new_body() where order_id = {key};
-- Another transaction may take the key first: then it is tried again.
update shop.orders set order_id = {other} where order_id = {key}
    and not exists (select from shop.orders where order_id = {other});
delete from shop.orders where order_id = {key};
delete from shop.orders where order_id = {key}
-- then
insert into shop.orders values ({key}, {customer}, shop.new_body(), {cents} / 100.0)
-- then
update shop.orders set customer = 'BONAP' where order_id = {key};
