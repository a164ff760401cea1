-- The orders as they were at a time, by Hudi's timeline (docs/storage.md):
-- --vars '{as_of: "2026-01-31 12:00:00"}'. Without it, as they are.
select
    order_id,
    customer_id,
    order_date,
    shipped_date

from {{ ref('orders') }} timestamp as of '{{ var("as_of", "2999-12-31 00:00:00") }}'

where not is_deleted

order by order_id
