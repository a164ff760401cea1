{#
    Every answer about revenue splits the same order lines: none is lost, none counts twice.
#}
with

totals as (

    select
        'silver.order_items' as total_of,
        cast(sum(revenue) as decimal(38, 4)) as revenue,
        count(distinct order_id) as count_orders,
        count(*) as count_items,
        cast(sum(quantity) as decimal(38, 2)) as total_quantity

    from {{ ref('order_items') }}

    where not is_deleted

    union all

    select
        'gold.revenue_by_customer' as total_of,
        cast(sum(revenue) as decimal(38, 4)) as revenue,
        coalesce(sum(count_orders), 0) as count_orders,
        coalesce(sum(count_items), 0) as count_items,
        cast(sum(total_quantity) as decimal(38, 2)) as total_quantity

    from {{ ref('revenue_by_customer') }}

    union all

    select
        'gold.revenue_by_product' as total_of,
        cast(sum(revenue) as decimal(38, 4)) as revenue,
        null as count_orders,
        null as count_items,
        cast(sum(total_quantity) as decimal(38, 2)) as total_quantity

    from {{ ref('revenue_by_product') }}

    union all

    select
        'gold.revenue_by_category' as total_of,
        cast(sum(revenue) as decimal(38, 4)) as revenue,
        null as count_orders,
        null as count_items,
        cast(sum(total_quantity) as decimal(38, 2)) as total_quantity

    from {{ ref('revenue_by_category') }}

    union all

    select
        'gold.revenue_by_month' as total_of,
        cast(sum(revenue) as decimal(38, 4)) as revenue,
        coalesce(sum(count_orders), 0) as count_orders,
        coalesce(sum(count_items), 0) as count_items,
        null as total_quantity

    from {{ ref('revenue_by_month') }}

    union all

    select
        'gold.revenue_by_employee' as total_of,
        cast(sum(revenue) as decimal(38, 4)) as revenue,
        coalesce(sum(count_orders), 0) as count_orders,
        null as count_items,
        null as total_quantity

    from {{ ref('revenue_by_employee') }}

),

{# A total that an answer does not have agrees with any. #}
spread as (

    select
        collect_list(struct(*)) as totals,
        count(distinct coalesce(revenue, 0)) as count_revenues,
        count(distinct count_orders) as count_order_counts,
        count(distinct count_items) as count_item_counts,
        count(distinct total_quantity) as count_quantities

    from totals

)

select * from spread
where
    count_revenues > 1
    or count_order_counts > 1
    or count_item_counts > 1
    or count_quantities > 1
