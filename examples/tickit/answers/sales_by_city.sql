select
    coalesce(venue.venuecity || ', ' || venue.venuestate, 'unknown') as city,
    count(distinct event.venueid) as count_venues,
    count(distinct sale.eventid) as count_events,
    count(*) as count_sales,
    sum(sale.qtysold) as tickets_sold,
    sum(sale.pricepaid) as revenue,
    sum(sale.commission) as commission,
    rank() over (order by sum(sale.pricepaid) desc) as revenue_rank
from ecomm.sale
left join ems.event using (eventid)
left join ems.venue using (venueid)
group by venue.venuecity, venue.venuestate
