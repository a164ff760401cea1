-- Each employee with what was sold.
select
    revenue_rank,
    employee_id,
    employee_name,
    title,
    count_orders,
    revenue,
    revenue_share

from {{ ref('revenue_by_employee') }}

order by revenue_rank, employee_id
