{{ config(unique_key='event_id') }}

with

listings as (

    select
        listid,
        numtickets,
        coalesce(eventid, 0) as event_id

    from {{ ref('tickit_listings') }}

    where not is_deleted

),

sales as (

    select
        listid,
        qtysold

    from {{ ref('tickit_sales') }}

    where not is_deleted

),

events as (

    select
        eventid,
        eventname

    from {{ ref('tickit_events') }}

    where not is_deleted

),

sold as (

    select
        listid,
        sum(qtysold) as tickets_sold

    from sales

    group by listid

),

sold_listings as (

    select
        listings.event_id,
        listings.numtickets,
        coalesce(sold.tickets_sold, 0) as tickets_sold

    from listings

    left outer join sold
        on listings.listid = sold.listid

),

by_event as (

    select
        event_id,
        count(*) as count_listings,
        count(case when tickets_sold >= numtickets then 1 end) as count_sold_out,
        sum(numtickets) as tickets_listed,
        sum(tickets_sold) as tickets_sold

    from sold_listings

    group by event_id

),

listing_sell_through as (

    select -- noqa: ST06
        by_event.event_id,
        events.eventname as event_name,
        by_event.count_listings,
        by_event.count_sold_out,
        by_event.tickets_listed,
        by_event.tickets_sold,
        cast(
            cast(by_event.tickets_sold as decimal(20, 0))
            / nullif(by_event.tickets_listed, 0)
            as decimal(12, 10)
        ) as sell_through

    from by_event

    left outer join events
        on by_event.event_id = events.eventid

)

select * from listing_sell_through
