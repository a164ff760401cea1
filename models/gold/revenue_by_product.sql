{{ config(unique_key='product_id') }}

with

order_items as (

    select
        order_id,
        product_id,
        quantity,
        revenue

    from {{ ref('order_items') }}

    where not is_deleted

),

orders as (

    select
        source_epoch,
        source_position,
        order_id,
        from_json(
            products,
            'array<struct<product_id:int, product_name:string, category_name:string>>'
        ) as products

    from {{ ref('orders') }}

    where not is_deleted

),

order_products as (

    select
        exploded.product.product_id,
        exploded.product.product_name,
        exploded.product.category_name,
        orders.source_epoch,
        orders.source_position,
        orders.order_id

    from orders

        lateral view explode(orders.products) exploded as product

),

{#
    An order shows its products as they were at its last change: the newest is right.
#}
products as (

    select
        product_id,
        max_by(
            struct(product_name, category_name),
            struct(source_epoch, source_position, order_id)
        ) as product

    from order_products

    group by product_id

),

by_product as (

    select
        product_id,
        cast(sum(quantity) as decimal(20, 2)) as total_quantity,
        cast(sum(revenue) as decimal(28, 4)) as revenue,
        count(distinct order_id) as count_orders

    from order_items

    group by product_id

),

revenue_by_product as (

    select
        by_product.product_id,
        products.product.product_name,
        products.product.category_name,
        by_product.count_orders,
        by_product.total_quantity,
        by_product.revenue,
        cast(
            by_product.revenue
            / nullif(cast(sum(by_product.revenue) over () as decimal(28, 4)), 0)
            as decimal(12, 10)
        ) as revenue_share,
        rank() over (order by by_product.revenue desc) as revenue_rank

    from by_product

    left outer join products
        on by_product.product_id = products.product_id

)

select * from revenue_by_product
