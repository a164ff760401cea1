{{ config(severity='warn') }}
{#
    A line without one of these has no revenue or no place in gold unseen. A warning: one odd
    line at the source must not stop every gold table for everybody.
#}
with

order_items as (

    select
        order_item_id,
        product_id,
        quantity,
        unit_price,
        discount,
        revenue

    from {{ ref('order_items') }}

    where not is_deleted

),

incomplete as (

    select * from order_items

    where
        product_id is null
        or revenue is null
        or not coalesce(quantity > 0, false)
        or not coalesce(unit_price >= 0, false)
        or not coalesce(discount between 0 and 1, false)

)

select * from incomplete
