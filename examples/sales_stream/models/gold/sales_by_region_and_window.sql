{{ config(unique_key='region_window') }}

with

sales as (

    select
        amount,
        country,
        window(sold_at, '10 minutes', '5 minutes') as sold_in

    from {{ ref('sales') }}

    where not is_deleted

),

regions as (

    select
        country,
        region

    from {{ ref('regions') }}

    where not is_deleted

),

sales_of_regions as (

    select
        sales.amount,
        sales.sold_in.start as window_start,
        sales.sold_in.end as window_end,
        coalesce(regions.region, 'unknown') as region

    from sales

    left outer join regions
        on sales.country = regions.country

),

sales_by_region_and_window as (

    select
        region,
        window_start,
        window_end,
        concat_ws(
            '/', region, date_format(window_start, "yyyy-MM-dd'T'HH:mm")
        ) as region_window,
        count(*) as count_sales,
        sum(amount) as revenue

    from sales_of_regions

    group by region, window_start, window_end

)

select * from sales_by_region_and_window
