-- The same of bronze, by hand: the newest event of each film. A value that it leaves
-- out, as PostgreSQL did not log it, is Debezium's placeholder here.
with

events as (

    select
        op,
        source_position,
        kafka_offset,
        cast(get_json_object(value, '$.film_id') as int) as film_id,
        cast(get_json_object(value, '$.rental_rate') as decimal(4, 2)) as rental_rate,
        get_json_object(value, '$.title') as title,
        get_json_object(value, '$.rating') as rating,
        get_json_object(value, '$.description') as description

    from {{ source('bronze', 'film') }}

),

ranked as (

    select
        *,
        row_number() over (
            partition by film_id
            order by source_position desc, kafka_offset desc
        ) as version_rank

    from events

)

select
    film_id,
    title,
    rating,
    rental_rate,
    description

from ranked

where version_rank = 1 and op <> 'd'

order by film_id
