-- How many of those who bought something like each kind of event.
with

buyers as (

    select distinct buyerid

    from {{ ref('tickit_sales') }}

    where not is_deleted

)

select
    count(case when people.likesports then 1 end) as sports,
    count(case when people.liketheatre then 1 end) as theatre,
    count(case when people.likeconcerts then 1 end) as concerts,
    count(case when people.likejazz then 1 end) as jazz,
    count(case when people.likeclassical then 1 end) as classical,
    count(case when people.likeopera then 1 end) as opera,
    count(case when people.likerock then 1 end) as rock,
    count(case when people.likevegas then 1 end) as vegas,
    count(case when people.likebroadway then 1 end) as broadway,
    count(case when people.likemusicals then 1 end) as musicals

from {{ ref('tickit_users') }} as people

inner join buyers
    on people.userid = buyers.buyerid

where not people.is_deleted
