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
        employee,
        source_epoch,
        source_position,
        cast(get_json_object(employee, '$.employee_id') as int) as employee_id

    from {{ ref('orders') }}

    where not is_deleted

),

{# Many orders show the same text, of which the names are parsed once. #}
shown as (

    select
        cast(get_json_object(employee, '$.employee_id') as int) as employee_id,
        struct(
            nullif(
                concat_ws(
                    ' ',
                    get_json_object(employee, '$.first_name'),
                    get_json_object(employee, '$.last_name')
                ),
                ''
            ) as employee_name,
            get_json_object(employee, '$.title') as title
        ) as employee,
        max(struct(source_epoch, source_position, order_id)) as newest

    from orders

    group by employee

),

{# An order shows its employee as of the order's last change: the newest is right. #}
employees as (

    select
        employee_id,
        max_by(employee, newest) as employee

    from shown

    group by employee_id

),

{# Summed before the join, which then has a row for each order, not each line. #}
sold_orders as (

    select
        order_id,
        sum(revenue) as revenue

    from order_items

    group by order_id

),

sold as (

    select
        sold_orders.revenue,
        coalesce(orders.employee_id, 0) as employee_id

    from sold_orders

    left outer join orders
        on sold_orders.order_id = orders.order_id

),

by_employee as (

    select
        employee_id,
        cast(sum(revenue) as decimal(28, 4)) as revenue,
        count(*) as count_orders

    from sold

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
