select
    sale.eventid as event_id,
    event.eventname as event_name,
    event.starttime as starts_at,
    coalesce(event.catid, 0) as category_id,
    category.catgroup as category_group,
    category.catname as category_name,
    coalesce(event.venueid, 0) as venue_id,
    venue.venuename as venue_name,
    venue.venuecity as venue_city,
    venue.venuestate as venue_state,
    count(*) as count_sales,
    sum(sale.qtysold) as tickets_sold,
    sum(sale.pricepaid) as revenue,
    sum(sale.commission) as commission,
    rank() over (order by sum(sale.pricepaid) desc) as revenue_rank
from ecomm.sale
left join ems.event using (eventid)
left join ems.category using (catid)
left join ems.venue using (venueid)
group by sale.eventid, event.eventid, category.catid, venue.venueid
