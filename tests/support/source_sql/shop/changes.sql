insert ignore into orders (order_id, customer_id, ordered_on, freight, flags, reference, details)
    values ({new}, {customer}, {day}, {number} / 7, {flags}, {reference},
        '{{"text": "The \\"Cracker\\" Box \\\\ 😀", "n": {number}}}');
replace into order_lines values ({order}, {product}, {number}, {number} / 8),
    ({order}, {product} + 1, {number}, 1), ({order}, {product} + 2, {number}, 1);
insert into order_lines values ({order}, {product}, {number}, 1), ({new}, {product}, 1, 1)
    on duplicate key update quantity = quantity + 1;
update orders set shipped_at = {moment} where order_id = {order};
update orders set state = {state} where order_id = {order};
update orders set freight = {number} / 9 where order_id = {order};
update orders set reference = {reference} where order_id = {order};
-- Many rows: they differ in the row of a position only.
update orders set freight = {number} / 9 where order_id between {order} and {order} + 40;
-- The keys of neighbours, from the highest on.
update ignore orders set order_id = order_id + 1
    where order_id between {order} and {order} + 3 order by order_id desc;
delete from orders where order_id = {order};
delete from order_lines where order_id = {order}
-- then
delete from orders where order_id = {order}
-- then
insert into orders (order_id, customer_id) values ({order}, 'C9');
update customers set name = 'Söhne {number}' where customer_id = 'C{number}';
-- A key, and not the wide column.
update ignore customers set customer_id = 'C{another}' where customer_id = 'C{number}';
-- A visit, in a second that is known: a clock may step back.
set timestamp = unix_timestamp(sysdate()) - {back}
-- then
insert into visits values ({visit}, {note}) on duplicate key update note = 'd';
set timestamp = unix_timestamp(sysdate()) - {back}
-- then
insert into visits values ({visit} + 1, {note}) on duplicate key update note = {note};
set timestamp = unix_timestamp(sysdate()) - {back}
-- then
insert ignore into visits values ({visit}, {note})
-- then
set timestamp = unix_timestamp(sysdate()) - {back}
-- then
update visits set note = 'e' where visit_id = {visit};
set timestamp = unix_timestamp(sysdate()) - {back}
-- then
update visits set note = {note} where visit_id between {visit} and {visit} + 3;
set timestamp = unix_timestamp(sysdate()) - {back}
-- then
update visits set note = {note} where visit_id = {visit} + 1;
set timestamp = unix_timestamp(sysdate()) - {back}
-- then
update visits set visit_id = {visitor} where visit_id = {visit};
set timestamp = unix_timestamp(sysdate()) - {back}
-- then
delete from visits where visit_id = {visit};
