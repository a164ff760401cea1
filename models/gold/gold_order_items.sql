{# The table is gold.order_items; silver has a model of that name. #}
{{ config(alias='order_items', unique_key='order_item_id') }}

with

order_items as (

    select
        order_item_id,
        order_id,
        product_id,
        unit_price,
        quantity,
        discount,
        revenue,
        coalesce(customer_id, 'unknown') as customer_id

    from {{ ref('order_items') }}

    where not is_deleted

),

orders as (

    select
        order_id,
        order_date,
        shipped_date,
        from_json(customer, 'company_name string, country string') as customer,
        nullif(
            concat_ws(
                ' ',
                get_json_object(employee, '$.first_name'),
                get_json_object(employee, '$.last_name')
            ),
            ''
        ) as employee_name,
        from_json(
            products,
            'array<struct<product_id:int, product_name:string, category_name:string>>'
        ) as products

    from {{ ref('orders') }}

    where not is_deleted

),

joined as (

    select
        order_items.order_item_id,
        order_items.order_id,
        order_items.customer_id,
        order_items.product_id,
        order_items.unit_price,
        order_items.quantity,
        order_items.discount,
        order_items.revenue,
        orders.order_date,
        orders.shipped_date,
        orders.customer,
        orders.employee_name,
        {# A product that is on the order twice is in the array twice. #}
        filter(
            orders.products, product -> product.product_id = order_items.product_id
        )[0] as product

    from order_items

    left outer join orders
        on order_items.order_id = orders.order_id

),

gold_order_items as (

    select
        joined.order_item_id,
        joined.order_id,
        joined.order_date,
        joined.shipped_date,
        joined.customer_id,
        joined.customer.company_name,
        joined.customer.country,
        joined.employee_name,
        joined.product_id,
        joined.product.product_name,
        joined.product.category_name,
        joined.unit_price,
        joined.quantity,
        joined.discount,
        joined.revenue

    from joined

)

select * from gold_order_items
