{{ config(unique_key='buyer_id') }}

with

sales as (

    select
        qtysold,
        pricepaid,
        commission,
        coalesce(buyerid, 0) as buyer_id

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

by_buyer as (

    select
        buyer_id,
        cast(sum(pricepaid) as decimal(28, 2)) as total_paid,
        cast(sum(commission) as decimal(28, 2)) as commission,
        count(*) as count_sales,
        sum(qtysold) as tickets_bought

    from sales

    group by buyer_id

),

best_buyers as (

    select -- noqa: ST06
        by_buyer.buyer_id,
        users.username as user_name,
        concat_ws(' ', users.firstname, users.lastname) as full_name,
        users.city,
        users.state,
        by_buyer.count_sales,
        by_buyer.tickets_bought,
        by_buyer.total_paid,
        by_buyer.commission,
        rank() over (order by by_buyer.total_paid desc) as buyer_rank

    from by_buyer

    left outer join users
        on by_buyer.buyer_id = users.userid

)

select * from best_buyers
