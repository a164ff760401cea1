-- The films as they are: silver has the newest row of each.
select
    film_id,
    title,
    rating,
    rental_rate,
    description

from {{ ref('film') }}

where not is_deleted

order by film_id
