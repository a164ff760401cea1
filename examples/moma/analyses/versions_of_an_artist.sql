-- What became of one artist, change by change, to the end.
select
    version_number,
    op,
    name,
    nationality,
    birth_year,
    death_year,
    valid_from,
    valid_to

from {{ ref('artists_history') }}

where artist_id = {{ var('artist_id', 41) }}

order by version_number
