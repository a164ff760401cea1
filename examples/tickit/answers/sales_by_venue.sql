select
    coalesce(event.venueid, 0) as venue_id,
    venue.venuename as venue_name,
    venue.venuecity as venue_city,
    venue.venuestate as venue_state,
    count(distinct sale.eventid) as count_events,
    count(*) as count_sales,
    sum(sale.qtysold) as tickets_sold,
    sum(sale.pricepaid) as revenue,
    sum(sale.commission) as commission,
    rank() over (order by sum(sale.pricepaid) desc) as revenue_rank
from ecomm.sale
left join ems.event using (eventid)
left join ems.venue using (venueid)
group by event.venueid, venue.venueid
