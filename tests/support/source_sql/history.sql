create schema shop;
create table shop.orders (
    order_id int primary key, customer text, body text, amount numeric(10, 2)
);
-- What is stored out of line is not in the log again when another column changes.
alter table shop.orders alter column body set storage external;
create table shop.signals (id text primary key, type text, data text);
