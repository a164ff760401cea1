-- How many films of each rating there are, and how long they are on average.
select
    rating,
    count(*) as count_films,
    round(avg(length), 1) as average_length

from {{ ref('films_by_rating') }}

group by rating

order by rating nulls last
