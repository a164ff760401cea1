-- What each day's sales of a category brought; 0 where there is no such event yet.
select
    dates.caldate,
    categories.catgroup,
    categories.catname,
    coalesce(categories.catid, 0) as catid,
    sum(sales.pricepaid) as revenue,
    sum(sales.commission) as commission

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

where not sales.is_deleted and not dates.is_deleted

group by
    dates.caldate,
    coalesce(categories.catid, 0),
    categories.catgroup,
    categories.catname

order by dates.caldate, coalesce(categories.catid, 0)
