-- Each sale.
select
    salesid,
    listid,
    sellerid,
    buyerid,
    eventid,
    dateid,
    qtysold,
    pricepaid,
    commission,
    saletime

from {{ ref('tickit_sales') }}

where not is_deleted

order by salesid
