select
    event.eventid as event_id,
    event.eventname as event_name,
    event.starttime as starts_at,
    category.catid as category_id,
    category.catgroup as category_group,
    category.catname as category_name,
    venue.venueid as venue_id,
    venue.venuename as venue_name,
    venue.venuecity as venue_city,
    venue.venuestate as venue_state,
    count(*) as count_sales,
    sum(sale.qtysold) as tickets_sold,
    sum(sale.pricepaid) as revenue,
    sum(sale.commission) as commission,
    rank() over (order by sum(sale.pricepaid) desc) as revenue_rank
from ecomm.sale
join ems.event using (eventid)
join ems.category using (catid)
join ems.venue using (venueid)
group by event.eventid, category.catid, venue.venueid
