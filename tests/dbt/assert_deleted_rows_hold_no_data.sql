{# Silver keeps of a deleted row its key and its position; what it said is gone. #}
with

leftovers as (

    select
        'orders' as table_name, -- noqa: RF04
        cast(order_id as string) as row_key

    from {{ ref('orders') }}

    where
        is_deleted is null
        or (
            is_deleted
            and coalesce(
                customer_id, order_date, required_date, shipped_date, order_items,
                products, customer, employee, shipper, shipment, updated_at
            ) is not null
        )

    union all

    select
        'order_items' as table_name, -- noqa: RF04
        order_item_id as row_key

    from {{ ref('order_items') }}

    where
        is_deleted is null
        or (
            is_deleted
            and coalesce(
                customer_id, unit_price, quantity, discount, revenue
            ) is not null
        )

    union all

    select
        'customers' as table_name, -- noqa: RF04
        customer_id as row_key

    from {{ ref('customers') }}

    where
        is_deleted is null
        or (
            is_deleted
            and coalesce(
                company_name, contact_name, contact_title, address, city, region,
                postal_code, country, phone, fax
            ) is not null
        )

    union all

    select
        'products' as table_name, -- noqa: RF04
        cast(product_id as string) as row_key

    from {{ ref('products') }}

    where
        is_deleted is null
        or (
            is_deleted
            and coalesce(
                product_name, supplier_id, category_id, quantity_per_unit, unit_price,
                units_in_stock, units_on_order, reorder_level, discontinued
            ) is not null
        )

)

select * from leftovers
