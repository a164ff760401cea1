-- Revenue month by month, and how it grew where the month before had any.
with

months as (

    select
        order_month,
        count_orders,
        count_items,
        revenue,
        lag(order_month) over (order by order_month) as last_month,
        lag(revenue) over (order by order_month) as last_revenue

    from {{ ref('revenue_by_month') }}

    -- orders without a date
    where order_month > date '1900-01-01'

)

select
    order_month,
    count_orders,
    count_items,
    revenue,
    case
        when order_month = last_month + interval '1' month
            then revenue - last_revenue
    end as growth

from months

order by order_month
