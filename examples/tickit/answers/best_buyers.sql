select
    sale.buyerid as buyer_id,
    "user".username as user_name,
    concat_ws(' ', "user".firstname, "user".lastname) as full_name,
    "user".city,
    "user".state,
    count(*) as count_sales,
    sum(sale.qtysold) as tickets_bought,
    sum(sale.pricepaid) as total_paid,
    sum(sale.commission) as commission,
    rank() over (order by sum(sale.pricepaid) desc) as buyer_rank
from ecomm.sale
left join crm."user" on sale.buyerid = "user".userid
group by sale.buyerid, "user".userid
