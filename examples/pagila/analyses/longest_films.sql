-- The two longest films of each rating.
select
    rating,
    length_rank,
    title,
    length

from {{ ref('films_by_rating') }}

where length_rank <= 2

order by rating nulls last, length_rank
