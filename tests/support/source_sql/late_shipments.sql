with shipped as (
    select
        coalesce(orders.ship_via, 0) as shipper_id,
        shippers.company_name as shipper_name,
        coalesce(orders.ship_country, 'unknown') as ship_country,
        case
            when orders.shipped_date > orders.required_date
                then orders.shipped_date - orders.required_date
        end as days_late
    from datalake.orders
    left join datalake.shippers on orders.ship_via = shippers.shipper_id
    where orders.shipped_date is not null
)
select
    shipper_id || '-' || ship_country as late_shipment_id,
    shipper_id,
    shipper_name,
    ship_country,
    count(*) as count_shipped,
    count(days_late) as count_late,
    round(count(days_late)::numeric / count(*), 10) as late_share,
    round(sum(days_late)::numeric / nullif(count(days_late), 0), 4) as avg_days_late
from shipped
group by shipper_id, shipper_name, ship_country
