{{ config(unique_key='category_id') }}

with

sales_by_event as (

    select * from {{ ref('sales_by_event') }}

),

by_category as (

    select
        category_id,
        category_group,
        category_name,
        cast(sum(revenue) as decimal(28, 2)) as revenue,
        cast(sum(commission) as decimal(28, 2)) as commission,
        sum(count_sales) as count_sales,
        sum(tickets_sold) as tickets_sold,
        count(*) as count_events

    from sales_by_event

    group by category_id, category_group, category_name

),

sales_by_category as (

    select
        category_id,
        category_group,
        category_name,
        count_events,
        count_sales,
        tickets_sold,
        revenue,
        commission,
        rank() over (order by revenue desc) as revenue_rank

    from by_category

)

select * from sales_by_category
