{{ config(unique_key='order_month') }}

with

versions as (

    select
        order_id,
        version_number,
        op,
        valid_from,
        order_date,
        shipped_date,
        coalesce(order_items <> lag(order_items) over (
            partition by order_id order by version_number
        ), false) as are_lines_changed

    from {{ ref('orders_history') }}

    -- a key of which only a delete was seen
    where op <> 'd'

),

orders as (

    select
        order_id,
        coalesce(
            trunc(max_by(order_date, version_number), 'month'), date '1900-01-01'
        ) as order_month,
        -- what a snapshot found was placed before
        case
            when min_by(op, version_number) = 'c' then min(valid_from)
        end as placed_at,
        min(case when shipped_date is not null then valid_from end) as shipped_at,
        count_if(are_lines_changed) as count_line_changes

    from versions

    group by order_id

),

waits as (

    select
        order_month,
        placed_at,
        count_line_changes,
        (unix_timestamp(shipped_at) - unix_timestamp(placed_at)) / 3600 as hours_to_ship

    from orders

),

by_month as (

    select
        order_month,
        cast(avg(hours_to_ship) as decimal(18, 1)) as avg_hours_to_ship,
        count(*) as count_orders,
        count(placed_at) as count_placed,
        count(hours_to_ship) as count_shipped,
        count_if(count_line_changes > 0) as count_changed,
        sum(count_line_changes) as count_line_changes

    from waits

    group by order_month

),

order_waits as (

    select
        order_month,
        count_orders,
        count_placed,
        count_shipped,
        avg_hours_to_ship,
        count_changed,
        count_line_changes

    from by_month

)

select * from order_waits
