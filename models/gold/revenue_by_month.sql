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

dated_items as (

    select
        order_items.order_id,
        order_items.revenue,
        coalesce(trunc(orders.order_date, 'month'), date '1900-01-01') as order_month

    from order_items

    left outer join orders
        on order_items.order_id = orders.order_id

),

by_month as (

    select
        order_month,
        cast(sum(revenue) as decimal(28, 4)) as revenue,
        count(distinct order_id) as count_orders,
        count(*) as count_items

    from dated_items

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
