-- Three have names of Northwind's; the last cannot be declared.
create table vendors (id int primary key, name varchar(60) not null, since date);
create table customers (id bigint primary key, email varchar(99));
create table products (id int primary key, price numeric(10, 2));
create table order_items (order_id int, line int, primary key (order_id, line));
create table orders (id int primary key, customer_id bigint, total numeric(12, 2));
create table stock (id int primary key, qty int);
create table carts (id uuid primary key, is_open boolean);
create table visits (id bigint primary key, at timestamp) partition by range (id);
create table visits_1 partition of visits for values from (0) to (1000);
create table "l{{ env_var('LAKE_ROOT') }} # é" (
    id int primary key, "a{{ 1/0 }}b" int, "no" int, "c: d # e" int, "名" int
);
comment on table vendors is 'Who sells {{ to }} us: # all';
create table no_key (a int);
