-- Where orders arrive late, by shipper and country; the worst first.
select
    shipper_id,
    shipper_name,
    ship_country,
    count_shipped,
    count_late,
    late_share,
    avg_days_late

from {{ ref('late_shipments') }}

order by late_share desc, count_shipped desc, late_shipment_id asc
