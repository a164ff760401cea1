{{ config(unique_key='event_id') }}

with

sales as (

    select
        qtysold,
        pricepaid,
        commission,
        coalesce(eventid, 0) as event_id

    from {{ ref('tickit_sales') }}

    where not is_deleted

),

events as (

    select
        eventid,
        venueid,
        catid,
        eventname,
        starttime

    from {{ ref('tickit_events') }}

    where not is_deleted

),

categories as (

    select
        catid,
        catgroup,
        catname

    from {{ ref('tickit_categories') }}

    where not is_deleted

),

venues as (

    select
        venueid,
        venuename,
        venuecity,
        venuestate

    from {{ ref('tickit_venues') }}

    where not is_deleted

),

by_event as (

    select
        event_id,
        cast(sum(pricepaid) as decimal(28, 2)) as revenue,
        cast(sum(commission) as decimal(28, 2)) as commission,
        count(*) as count_sales,
        sum(qtysold) as tickets_sold

    from sales

    group by event_id

),

sales_by_event as (

    select -- noqa: ST06
        by_event.event_id,
        events.eventname as event_name,
        events.starttime as starts_at,
        coalesce(events.catid, 0) as category_id,
        categories.catgroup as category_group,
        categories.catname as category_name,
        coalesce(events.venueid, 0) as venue_id,
        venues.venuename as venue_name,
        venues.venuecity as venue_city,
        venues.venuestate as venue_state,
        by_event.count_sales,
        by_event.tickets_sold,
        by_event.revenue,
        by_event.commission,
        rank() over (order by by_event.revenue desc) as revenue_rank

    from by_event

    left outer join events
        on by_event.event_id = events.eventid

    left outer join categories
        on events.catid = categories.catid

    left outer join venues
        on events.venueid = venues.venueid

)

select * from sales_by_event
