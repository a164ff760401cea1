-- Each category with what its products brought.
select
    revenue_rank,
    category_name,
    count_products,
    total_quantity,
    revenue,
    revenue_share

from {{ ref('revenue_by_category') }}

order by revenue_rank, category_name
