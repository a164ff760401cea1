-- What became of one work, change by change.
select
    version_number,
    op,
    title,
    date,
    medium,
    credit,
    classification,
    valid_from,
    valid_to

from {{ ref('artworks_history') }}

where artwork_id = {{ var('artwork_id', 128) }}

order by version_number
