{{ config(unique_key='seller_id') }}

with

sales as (

    select
        qtysold,
        pricepaid,
        commission,
        coalesce(sellerid, 0) as seller_id

    from {{ ref('tickit_sales') }}

    where not is_deleted

),

users as (

    select
        userid,
        username,
        firstname,
        lastname,
        city,
        state

    from {{ ref('tickit_users') }}

    where not is_deleted

),

by_seller as (

    select
        seller_id,
        cast(sum(pricepaid) as decimal(28, 2)) as revenue,
        cast(sum(commission) as decimal(28, 2)) as commission,
        count(*) as count_sales,
        sum(qtysold) as tickets_sold

    from sales

    group by seller_id

),

best_sellers as (

    select -- noqa: ST06
        by_seller.seller_id,
        users.username as user_name,
        concat_ws(' ', users.firstname, users.lastname) as full_name,
        users.city,
        users.state,
        by_seller.count_sales,
        by_seller.tickets_sold,
        by_seller.revenue,
        by_seller.commission,
        rank() over (order by by_seller.revenue desc) as seller_rank

    from by_seller

    left outer join users
        on by_seller.seller_id = users.userid

)

select * from best_sellers
