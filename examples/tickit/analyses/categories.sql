-- Each category of events.
select
    catid,
    catgroup,
    catname,
    catdesc

from {{ ref('tickit_categories') }}

where not is_deleted

order by catid
