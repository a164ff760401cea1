-- The ten actors who are in the most films.
select
    actor.actor_id,
    actor.first_name,
    actor.last_name,
    count(*) as count_films

from {{ ref('film_actor') }} as film_actor

inner join {{ ref('actor') }} as actor
    on film_actor.actor_id = actor.actor_id

where not film_actor.is_deleted and not actor.is_deleted

group by actor.actor_id, actor.first_name, actor.last_name

order by count_films desc, actor.actor_id asc

limit 10
