-- Each venue.
select
    venueid,
    venuename,
    venuecity,
    venuestate,
    venueseats

from {{ ref('tickit_venues') }}

where not is_deleted

order by venueid
