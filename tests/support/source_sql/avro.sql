-- A row is inserted, changed, deleted, and given another key. A type is widened, and a
-- column added and dropped, between changes of its table.
insert into datalake.customers (customer_id, company_name) values ('AVROA', 'Käse "x"');
insert into datalake.customers (customer_id, company_name) values ('AVROB', 'B');
update datalake.customers set company_name = 'C', phone = '1' where customer_id = 'AVROB';
delete from datalake.customers where customer_id = 'AVROA';
update datalake.customers set customer_id = 'AVROC' where customer_id = 'AVROB';
update datalake.orders set shipped_date = '1999-12-31' where order_id = 10248;
delete from datalake.orders where order_id = 10250;
update datalake.employees set birth_date = '0001-01-01', photo = '\x00ff'
where employee_id = 1;
insert into datalake.region values (5, 'before');
alter table datalake.region add column size smallint;
update datalake.region set size = 1 where region_id = 1;
alter table datalake.region alter column size type integer;
insert into datalake.region values (6, 'widened', 70000);
alter table datalake.region drop column size;
insert into datalake.region values (7, 'dropped');
delete from datalake.region where region_id = 5;
