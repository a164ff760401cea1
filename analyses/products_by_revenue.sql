-- Each product with what it brought, and its part of all revenue.
select
    revenue_rank,
    product_id,
    product_name,
    category_name,
    count_orders,
    total_quantity,
    revenue,
    revenue_share

from {{ ref('revenue_by_product') }}

order by revenue_rank, product_id
