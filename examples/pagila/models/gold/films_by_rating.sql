{{ config(unique_key='film_id') }}

with

films as (

    select * from {{ ref('film') }}

    where not is_deleted

),

languages as (

    select * from {{ ref('language') }}

    where not is_deleted

),

categories as (

    select * from {{ ref('category') }}

    where not is_deleted

),

film_categories as (

    select * from {{ ref('film_category') }}

    where not is_deleted

),

film_actors as (

    select * from {{ ref('film_actor') }}

    where not is_deleted

),

categories_of_films as (

    select
        film_categories.film_id,
        min(categories.name) as category_name

    from film_categories

    inner join categories
        on film_categories.category_id = categories.category_id

    group by film_categories.film_id

),

actors_of_films as (

    select
        film_id,
        count(*) as count_actors

    from film_actors

    group by film_id

),

films_by_rating as (

    select
        films.film_id,
        films.rating,
        films.title,
        films.release_year,
        languages.name as language_name,
        categories_of_films.category_name,
        films.length,
        films.rental_rate,
        coalesce(actors_of_films.count_actors, 0) as count_actors,
        coalesce(
            array_contains(
                from_json(films.special_features, 'array<string>'), 'Deleted Scenes'
            ),
            false
        ) as has_deleted_scenes,
        row_number() over (
            partition by films.rating
            order by films.length desc, films.film_id asc
        ) as length_rank

    from films

    left outer join languages
        on films.language_id = languages.language_id

    left outer join categories_of_films
        on films.film_id = categories_of_films.film_id

    left outer join actors_of_films
        on films.film_id = actors_of_films.film_id

)

select * from films_by_rating
