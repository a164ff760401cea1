{{ config(unique_key='venue_id') }}

with

sales_by_event as (

    select * from {{ ref('sales_by_event') }}

),

by_venue as (

    select
        venue_id,
        venue_name,
        venue_city,
        venue_state,
        cast(sum(revenue) as decimal(28, 2)) as revenue,
        cast(sum(commission) as decimal(28, 2)) as commission,
        sum(count_sales) as count_sales,
        sum(tickets_sold) as tickets_sold,
        count(*) as count_events

    from sales_by_event

    group by venue_id, venue_name, venue_city, venue_state

),

sales_by_venue as (

    select
        venue_id,
        venue_name,
        venue_city,
        venue_state,
        count_events,
        count_sales,
        tickets_sold,
        revenue,
        commission,
        rank() over (order by revenue desc) as revenue_rank

    from by_venue

)

select * from sales_by_venue
