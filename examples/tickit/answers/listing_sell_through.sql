select
    listing.eventid as event_id,
    event.eventname as event_name,
    count(*) as count_listings,
    count(*) filter (where sold.tickets >= listing.numtickets) as count_sold_out,
    sum(listing.numtickets) as tickets_listed,
    coalesce(sum(sold.tickets), 0) as tickets_sold,
    round(coalesce(sum(sold.tickets), 0)::numeric / sum(listing.numtickets), 10)
        as sell_through
from ecomm.listing
left join ems.event using (eventid)
left join (
    select listid, sum(qtysold) as tickets from ecomm.sale group by listid
) as sold using (listid)
group by listing.eventid, event.eventid
