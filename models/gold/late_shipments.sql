{{ config(unique_key='late_shipment_id') }}

with

orders as (

    select
        order_id,
        shipper,
        required_date,
        shipped_date,
        source_epoch,
        source_position,
        coalesce(get_json_object(shipment, '$.ship_country'), 'unknown') as ship_country

    from {{ ref('orders') }}

    where not is_deleted

),

{# Many orders show the same text, of which the name is parsed once. #}
shown as (

    select
        cast(get_json_object(shipper, '$.shipper_id') as int) as shipper_id,
        get_json_object(shipper, '$.company_name') as shipper_name,
        max(struct(source_epoch, source_position, order_id)) as newest

    from orders

    group by shipper

),

{#
    An order shows its shipper as it was at the order's last change: the newest is right.
#}
shippers as (

    select
        shipper_id,
        max_by(shipper_name, newest) as shipper_name

    from shown

    group by shipper_id

),

shipped as (

    select
        ship_country,
        coalesce(
            cast(get_json_object(shipper, '$.shipper_id') as int), 0
        ) as shipper_id,
        count(*) as count_shipped,
        count_if(shipped_date > required_date) as count_late,
        sum(
            case
                when shipped_date > required_date
                    then datediff(shipped_date, required_date)
            end
        ) as total_days_late

    from orders

    where shipped_date is not null

    group by shipper, ship_country

),

by_route as (

    select
        shipper_id,
        ship_country,
        concat_ws('-', shipper_id, ship_country) as late_shipment_id,
        sum(count_shipped) as count_shipped,
        sum(count_late) as count_late,
        sum(total_days_late) as total_days_late

    from shipped

    group by shipper_id, ship_country

),

late_shipments as (

    select
        by_route.late_shipment_id,
        by_route.shipper_id,
        shippers.shipper_name,
        by_route.ship_country,
        by_route.count_shipped,
        by_route.count_late,
        cast(
            cast(by_route.count_late as decimal(20, 0)) / by_route.count_shipped
            as decimal(12, 10)
        ) as late_share,
        cast(
            cast(by_route.total_days_late as decimal(20, 0))
            / nullif(by_route.count_late, 0)
            as decimal(20, 4)
        ) as avg_days_late

    from by_route

    left outer join shippers
        on by_route.shipper_id = shippers.shipper_id

)

select * from late_shipments
