-- Each event.
select
    eventid,
    venueid,
    catid,
    dateid,
    eventname,
    starttime

from {{ ref('tickit_events') }}

where not is_deleted

order by eventid
