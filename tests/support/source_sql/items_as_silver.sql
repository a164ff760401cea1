-- What PostgreSQL knows as the tables that the analyses read.
create schema lake_gold;
create schema lake_silver;
create table lake_silver.orders as
    select order_id, order_date, false as is_deleted from datalake.orders;
create table lake_silver.order_items as
    select
        items.order_id, items.customer_id, items.product_id,
        order_details.unit_price::text::numeric as unit_price,
        items.quantity,
        order_details.discount::text::numeric as discount,
        items.revenue, false as is_deleted
    from items
    join datalake.order_details using (order_id, product_id);
