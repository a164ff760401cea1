-- Each listing of tickets.
select
    listid,
    sellerid,
    eventid,
    dateid,
    numtickets,
    priceperticket,
    totalprice,
    listtime

from {{ ref('tickit_listings') }}

where not is_deleted

order by listid
