{{ config(unique_key='product_id') }}

with

order_items as (

    select
        order_item_id,
        order_id,
        product_id,
        quantity,
        revenue,
        source_epoch,
        source_position

    from {{ ref('order_items') }}

    where not is_deleted

),

by_product as (

    select
        product_id,
        cast(sum(quantity) as decimal(20, 2)) as total_quantity,
        cast(sum(revenue) as decimal(28, 4)) as revenue,
        {# The first line of a product on an order: the others have a # in their key. #}
        count_if(order_item_id not like '%#%') as count_orders,
        max(struct(source_epoch, source_position, order_id)) as newest

    from order_items

    group by product_id

),

{#
    An order shows its products as they were at its last change: the newest is right.
    The others are not parsed.
#}
shown as (

    select
        by_product.*,
        filter(
            from_json(
                orders.products,
                'array<struct<product_id:int,product_name:string,category_name:string>>'
            ),
            product -> product.product_id = by_product.product_id
        )[0] as product

    from by_product

    left outer join {{ ref('orders') }} as orders
        on by_product.newest.order_id = orders.order_id

),

revenue_by_product as (

    select
        shown.product_id,
        shown.product.product_name,
        shown.product.category_name,
        shown.count_orders,
        shown.total_quantity,
        shown.revenue,
        cast(
            shown.revenue
            / nullif(cast(sum(shown.revenue) over () as decimal(28, 4)), 0)
            as decimal(12, 10)
        ) as revenue_share,
        rank() over (order by shown.revenue desc) as revenue_rank

    from shown

)

select * from revenue_by_product
