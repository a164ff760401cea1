-- Each sale with its event and the names of who sold and who bought.
select
    sales.salesid,
    sales.sellerid,
    dates.caldate,
    sales.qtysold,
    sales.pricepaid,
    sales.commission,
    events.eventname,
    categories.catgroup,
    categories.catname,
    concat_ws(' ', sellers.firstname, sellers.lastname) as seller,
    concat_ws(' ', buyers.firstname, buyers.lastname) as buyer

from {{ ref('tickit_sales') }} as sales

inner join {{ ref('tickit_dates') }} as dates
    on sales.dateid = dates.dateid

left outer join {{ ref('tickit_events') }} as events
    on
        sales.eventid = events.eventid
        and not events.is_deleted

left outer join {{ ref('tickit_categories') }} as categories
    on
        events.catid = categories.catid
        and not categories.is_deleted

left outer join {{ ref('tickit_users') }} as sellers
    on
        sales.sellerid = sellers.userid
        and not sellers.is_deleted

left outer join {{ ref('tickit_users') }} as buyers
    on
        sales.buyerid = buyers.userid
        and not buyers.is_deleted

where not sales.is_deleted and not dates.is_deleted

order by sales.salesid
