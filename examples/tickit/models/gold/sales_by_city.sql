{{ config(unique_key='city') }}

with

sales_by_event as (

    select
        event_id,
        venue_id,
        count_sales,
        tickets_sold,
        revenue,
        commission,
        coalesce(concat(venue_city, ', ', venue_state), venue_city, 'unknown') as city

    from {{ ref('sales_by_event') }}

),

by_city as (

    select
        city,
        cast(sum(revenue) as decimal(28, 2)) as revenue,
        cast(sum(commission) as decimal(28, 2)) as commission,
        count(distinct nullif(venue_id, 0)) as count_venues,
        count(*) as count_events,
        sum(count_sales) as count_sales,
        sum(tickets_sold) as tickets_sold

    from sales_by_event

    group by city

),

sales_by_city as (

    select
        city,
        count_venues,
        count_events,
        count_sales,
        tickets_sold,
        revenue,
        commission,
        rank() over (order by revenue desc) as revenue_rank

    from by_city

)

select * from sales_by_city
