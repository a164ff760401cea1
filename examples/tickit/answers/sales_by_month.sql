select
    coalesce(date_trunc('month', date.caldate)::date, '1900-01-01') as sale_month,
    count(*) as count_sales,
    sum(sale.qtysold) as tickets_sold,
    sum(sale.pricepaid) as revenue,
    sum(sale.commission) as commission
from ecomm.sale
left join ecomm.date using (dateid)
group by date_trunc('month', date.caldate)
