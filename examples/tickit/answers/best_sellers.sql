select
    sale.sellerid as seller_id,
    "user".username as user_name,
    concat_ws(' ', "user".firstname, "user".lastname) as full_name,
    "user".city,
    "user".state,
    count(*) as count_sales,
    sum(sale.qtysold) as tickets_sold,
    sum(sale.pricepaid) as revenue,
    sum(sale.commission) as commission,
    rank() over (order by sum(sale.pricepaid) desc) as seller_rank
from ecomm.sale
left join crm."user" on sale.sellerid = "user".userid
group by sale.sellerid, "user".userid
