{{ config(unique_key='employee_id') }}

with

order_items as (

    select
        order_id,
        revenue

    from {{ ref('order_items') }}

    where not is_deleted

),

orders as (

    select
        order_id,
        source_epoch,
        source_position,
        cast(get_json_object(employee, '$.employee_id') as int) as employee_id,
        get_json_object(employee, '$.title') as title,
        nullif(
            concat_ws(
                ' ',
                get_json_object(employee, '$.first_name'),
                get_json_object(employee, '$.last_name')
            ),
            ''
        ) as employee_name

    from {{ ref('orders') }}

    where not is_deleted

),

{# An order shows its employee as of the order's last change: the newest is right. #}
employees as (

    select
        employee_id,
        max_by(
            struct(employee_name, title),
            struct(source_epoch, source_position, order_id)
        ) as employee

    from orders

    group by employee_id

),

sold_items as (

    select
        order_items.order_id,
        order_items.revenue,
        coalesce(orders.employee_id, 0) as employee_id

    from order_items

    left outer join orders
        on order_items.order_id = orders.order_id

),

by_employee as (

    select
        employee_id,
        cast(sum(revenue) as decimal(28, 4)) as revenue,
        count(distinct order_id) as count_orders

    from sold_items

    group by employee_id

),

revenue_by_employee as (

    select
        by_employee.employee_id,
        employees.employee.employee_name,
        employees.employee.title,
        by_employee.count_orders,
        by_employee.revenue,
        cast(
            by_employee.revenue
            / nullif(cast(sum(by_employee.revenue) over () as decimal(28, 4)), 0)
            as decimal(12, 10)
        ) as revenue_share,
        rank() over (order by by_employee.revenue desc) as revenue_rank

    from by_employee

    left outer join employees
        on by_employee.employee_id = employees.employee_id

)

select * from revenue_by_employee
