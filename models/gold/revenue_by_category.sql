{{ config(unique_key='category_name') }}

with

products as (

    select
        total_quantity,
        revenue,
        coalesce(category_name, 'unknown') as category_name

    from {{ ref('revenue_by_product') }}

),

by_category as (

    select
        category_name,
        cast(sum(total_quantity) as decimal(20, 2)) as total_quantity,
        cast(sum(revenue) as decimal(28, 4)) as revenue,
        count(*) as count_products

    from products

    group by category_name

),

revenue_by_category as (

    select
        category_name,
        count_products,
        total_quantity,
        revenue,
        cast(
            revenue / nullif(cast(sum(revenue) over () as decimal(28, 4)), 0)
            as decimal(12, 10)
        ) as revenue_share,
        rank() over (order by revenue desc) as revenue_rank

    from by_category

)

select * from revenue_by_category
