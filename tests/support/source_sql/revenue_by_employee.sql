select
    coalesce(items.employee_id, 0) as employee_id,
    nullif(concat_ws(' ', employees.first_name, employees.last_name), '') as employee_name,
    employees.title,
    count(distinct items.order_id) as count_orders,
    sum(items.revenue) as revenue,
    round(sum(items.revenue) / nullif(sum(sum(items.revenue)) over (), 0), 10)
        as revenue_share,
    rank() over (order by sum(items.revenue) desc) as revenue_rank
from items
left join datalake.employees on items.employee_id = employees.employee_id
group by
    coalesce(items.employee_id, 0),
    employees.first_name,
    employees.last_name,
    employees.title
