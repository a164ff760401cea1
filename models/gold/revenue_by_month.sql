{{ config(unique_key='order_month') }}

with

order_items as (

    select
        order_id,
        revenue

    from {{ ref('order_items') }}

    where not is_deleted

),

orders as (

    select
        order_id,
        order_date

    from {{ ref('orders') }}

    where not is_deleted

),

{# Summed before the join, which then has a row for each order, not each line. #}
sold_orders as (

    select
        order_id,
        sum(revenue) as revenue,
        count(*) as count_items

    from order_items

    group by order_id

),

dated_orders as (

    select
        sold_orders.revenue,
        sold_orders.count_items,
        coalesce(trunc(orders.order_date, 'month'), date '1900-01-01') as order_month

    from sold_orders

    left outer join orders
        on sold_orders.order_id = orders.order_id

),

by_month as (

    select
        order_month,
        cast(sum(revenue) as decimal(28, 4)) as revenue,
        count(*) as count_orders,
        sum(count_items) as count_items

    from dated_orders

    group by order_month

),

revenue_by_month as (

    select
        order_month,
        count_orders,
        count_items,
        revenue

    from by_month

)

select * from revenue_by_month
