-- How many films of each category there are; a category without one has 0.
select
    category.name,
    count(films_by_rating.film_id) as count_films

from {{ ref('category') }} as category

left outer join {{ ref('films_by_rating') }} as films_by_rating
    on category.name = films_by_rating.category_name

where not category.is_deleted

group by category.name

order by count_films desc, category.name asc
