update parts set n = n + 10;
create table parts_3 partition of parts for values from ('2028-01-01') to ('2029-01-01');
insert into parts values
    (4, '2028-02-02', 4, repeat('long', 5000)), (5, '2028-02-02', 5, 'y');
update parts set n = 40 where id = 4;
update parts set at = '2028-03-03' where id = 2;
delete from parts where id in (3, 5);
update parent set v = v || '!';
insert into child values (4, 'c', 'd');
delete from only parent where id = 2;
