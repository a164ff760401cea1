-- The twenty customers with the highest revenue, and their part of all revenue.
select
    revenue_rank,
    customer_id,
    company_name,
    country,
    revenue,
    revenue_share,
    sum(revenue_share) over (order by revenue_rank, customer_id) as share_so_far

from {{ ref('revenue_by_customer') }}

where revenue_rank <= 20

order by revenue_rank, customer_id
