-- What the role of the connectors may not do.
select * from changed_orders;
select * from debezium_signals_tables;
insert into shippers values (99, 'x');
update orders set freight = 0;
delete from cdc_events;
create table mine (id int);
create publication mine;
call fill_cdc_events();
