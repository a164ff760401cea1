-- Each day.
select
    dateid,
    caldate,
    day,
    week,
    month,
    qtr,
    year,
    holiday

from {{ ref('tickit_dates') }}

where not is_deleted

order by dateid
