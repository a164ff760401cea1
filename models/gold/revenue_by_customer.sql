{{ config(unique_key='customer_id') }}

with

order_items as (

    select
        order_id,
        quantity,
        revenue,
        coalesce(customer_id, 'unknown') as customer_id

    from {{ ref('order_items') }}

    where not is_deleted

),

orders as (

    select
        customer_id,
        customer,
        source_epoch,
        source_position,
        order_id

    from {{ ref('orders') }}

    where not is_deleted and customer is not null

),

{#
    An order shows its customer as it was at the order's last change: the newest is right.
#}
newest_customers as (

    select
        customer_id,
        max_by(customer, struct(source_epoch, source_position, order_id)) as customer

    from orders

    group by customer_id

),

customers as (

    select
        customer_id,
        from_json(customer, 'company_name string, country string') as customer

    from newest_customers

),

by_customer as (

    select
        customer_id,
        cast(sum(quantity) as decimal(20, 2)) as total_quantity,
        cast(sum(revenue) as decimal(28, 4)) as revenue,
        count(distinct order_id) as count_orders,
        count(*) as count_items

    from order_items

    group by customer_id

),

revenue_by_customer as (

    select -- noqa: ST06
        by_customer.customer_id,
        customers.customer.company_name,
        customers.customer.country,
        by_customer.count_orders,
        by_customer.count_items,
        by_customer.total_quantity,
        by_customer.revenue,
        cast(
            by_customer.revenue
            / nullif(cast(sum(by_customer.revenue) over () as decimal(28, 4)), 0)
            as decimal(12, 10)
        ) as revenue_share,
        rank() over (order by by_customer.revenue desc) as revenue_rank,
        cast(
            by_customer.total_quantity / by_customer.count_orders as decimal(20, 4)
        ) as avg_order_quantity,
        cast(
            by_customer.revenue / by_customer.count_orders as decimal(20, 4)
        ) as avg_order_revenue,
        cast(
            by_customer.total_quantity / by_customer.count_items as decimal(20, 4)
        ) as avg_item_quantity,
        cast(
            by_customer.revenue / by_customer.count_items as decimal(20, 4)
        ) as avg_item_revenue,
        {#
            Rounded as the customer's own average is: what is equal is not above it.
        #}
        case
            when
                by_customer.count_orders < avg(by_customer.count_orders) over ()
                and cast(
                    by_customer.revenue / by_customer.count_items as decimal(20, 4)
                ) > cast(
                    cast(sum(by_customer.revenue) over () as decimal(28, 4))
                    / sum(by_customer.count_items) over ()
                    as decimal(20, 4)
                )
                then 'rarely and well'
            else 'otherwise'
        end as buys

    from by_customer

    left outer join customers
        on by_customer.customer_id = customers.customer_id

)

select * from revenue_by_customer
