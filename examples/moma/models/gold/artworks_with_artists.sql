{{ config(unique_key='artwork_id') }}

select
    artworks.artwork_id,
    artworks.title,
    artworks.date,
    artworks.classification,
    artists.name as artist,
    artists.nationality,
    artists.gender,
    artists.birth_year,
    artists.death_year

from {{ ref('artworks') }} as artworks

inner join {{ ref('artists') }} as artists
    on artworks.artist_id = artists.artist_id

where
    not artworks.is_deleted
    and not artists.is_deleted
