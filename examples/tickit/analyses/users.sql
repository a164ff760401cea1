-- Each user.
select
    userid,
    username,
    firstname,
    lastname,
    city,
    state,
    email,
    phone,
    likesports,
    liketheatre,
    likeconcerts,
    likejazz,
    likeclassical,
    likeopera,
    likerock,
    likevegas,
    likebroadway,
    likemusicals

from {{ ref('tickit_users') }}

where not is_deleted

order by userid
