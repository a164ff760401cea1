-- How many films of each language there are.
select
    language_name,
    count(*) as count_films

from {{ ref('films_by_rating') }}

group by language_name

order by count_films desc, language_name asc
