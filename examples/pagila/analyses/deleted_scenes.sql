-- The films with deleted scenes among their special features.
select
    film_id,
    title,
    rating

from {{ ref('films_by_rating') }}

where has_deleted_scenes

order by film_id
