{#
    Every answer about TICKIT splits the same sales: none is lost, none counts twice.
#}
with

totals as (

    select
        'silver.tickit_sales' as total_of,
        count(*) as count_sales,
        coalesce(sum(qtysold), 0) as tickets,
        cast(coalesce(sum(pricepaid), 0) as decimal(38, 2)) as revenue,
        cast(coalesce(sum(commission), 0) as decimal(38, 2)) as commission

    from {{ ref('tickit_sales') }}

    where not is_deleted

    union all

    select
        'gold.sales_by_event' as total_of,
        coalesce(sum(count_sales), 0) as count_sales,
        coalesce(sum(tickets_sold), 0) as tickets,
        cast(coalesce(sum(revenue), 0) as decimal(38, 2)) as revenue,
        cast(coalesce(sum(commission), 0) as decimal(38, 2)) as commission

    from {{ ref('sales_by_event') }}

    union all

    select
        'gold.sales_by_category' as total_of,
        coalesce(sum(count_sales), 0) as count_sales,
        coalesce(sum(tickets_sold), 0) as tickets,
        cast(coalesce(sum(revenue), 0) as decimal(38, 2)) as revenue,
        cast(coalesce(sum(commission), 0) as decimal(38, 2)) as commission

    from {{ ref('sales_by_category') }}

    union all

    select
        'gold.sales_by_venue' as total_of,
        coalesce(sum(count_sales), 0) as count_sales,
        coalesce(sum(tickets_sold), 0) as tickets,
        cast(coalesce(sum(revenue), 0) as decimal(38, 2)) as revenue,
        cast(coalesce(sum(commission), 0) as decimal(38, 2)) as commission

    from {{ ref('sales_by_venue') }}

    union all

    select
        'gold.sales_by_city' as total_of,
        coalesce(sum(count_sales), 0) as count_sales,
        coalesce(sum(tickets_sold), 0) as tickets,
        cast(coalesce(sum(revenue), 0) as decimal(38, 2)) as revenue,
        cast(coalesce(sum(commission), 0) as decimal(38, 2)) as commission

    from {{ ref('sales_by_city') }}

    union all

    select
        'gold.sales_by_month' as total_of,
        coalesce(sum(count_sales), 0) as count_sales,
        coalesce(sum(tickets_sold), 0) as tickets,
        cast(coalesce(sum(revenue), 0) as decimal(38, 2)) as revenue,
        cast(coalesce(sum(commission), 0) as decimal(38, 2)) as commission

    from {{ ref('sales_by_month') }}

    union all

    select
        'gold.best_buyers' as total_of,
        coalesce(sum(count_sales), 0) as count_sales,
        coalesce(sum(tickets_bought), 0) as tickets,
        cast(coalesce(sum(total_paid), 0) as decimal(38, 2)) as revenue,
        cast(coalesce(sum(commission), 0) as decimal(38, 2)) as commission

    from {{ ref('best_buyers') }}

    union all

    select
        'gold.best_sellers' as total_of,
        coalesce(sum(count_sales), 0) as count_sales,
        coalesce(sum(tickets_sold), 0) as tickets,
        cast(coalesce(sum(revenue), 0) as decimal(38, 2)) as revenue,
        cast(coalesce(sum(commission), 0) as decimal(38, 2)) as commission

    from {{ ref('best_sellers') }}

),

spread as (

    select
        collect_list(struct(*)) as totals,
        count(distinct count_sales, tickets, revenue, commission) as count_totals

    from totals

)

select * from spread
where count_totals > 1
