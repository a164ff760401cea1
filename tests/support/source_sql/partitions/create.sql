create table parts (id bigint, at date, n int, v text, primary key (id, at))
    partition by range (at);
alter table parts alter column v set storage external;
create table parts_1 partition of parts for values from ('2026-01-01') to ('2027-01-01');
create table parts_2 partition of parts for values from ('2027-01-01') to ('2028-01-01');
alter table parts_2 replica identity full;
insert into parts values
    (1, '2026-05-05', 1, repeat('long', 5000)),
    (2, '2026-06-06', 2, 'x'),
    (3, '2027-01-01', 3, repeat('long', 5000));
create table parent (id int primary key, v text);
create table child (extra text) inherits (parent);
insert into parent values (1, 'a'), (2, 'b');
insert into child values (3, 'c', 'd');
create table plain (id int primary key, v text);
insert into plain values (1, 'a'), (2, 'b');
create table signals (id varchar(42) primary key, type varchar(32), data varchar(2048));
create table complete_snapshots (
    id text primary key, topic text, bronze_table text, row_count bigint
);
insert into complete_snapshots values ('first');
grant select on complete_snapshots to debezium;
