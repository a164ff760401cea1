select
    coalesce(event.catid, 0) as category_id,
    category.catgroup as category_group,
    category.catname as category_name,
    count(distinct sale.eventid) as count_events,
    count(*) as count_sales,
    sum(sale.qtysold) as tickets_sold,
    sum(sale.pricepaid) as revenue,
    sum(sale.commission) as commission,
    rank() over (order by sum(sale.pricepaid) desc) as revenue_rank
from ecomm.sale
left join ems.event using (eventid)
left join ems.category using (catid)
group by event.catid, category.catid
