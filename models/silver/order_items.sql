{{ config(unique_key='order_item_id') }}

with

orders as (

    select * from {{ ref('orders') }}

    {% if cdc_lakehouse.reads_increment() %}

        -- rand(), so that Spark reads the orders once for both uses, and not twice
        where {{ cdc_lakehouse.arrived_in_this_run('orders') }} and rand() >= 0

    {% endif %}

),

lines as (

    select
        orders.*,
        exploded.line.*,
        exploded.line_number

    from orders

        lateral view posexplode(
            from_json(
                orders.order_items,
                'array<struct<
                    product_id: int,
                    unit_price: decimal(12, 4),
                    quantity: decimal(10, 2),
                    discount: decimal(6, 4)
                >>'
            )
        ) exploded as line_number, line

    where not orders.is_deleted

),

present as (

    select
        concat_ws('-', order_id, product_id) as order_item_id,
        order_id,
        product_id,
        customer_id,
        unit_price,
        quantity,
        discount,
        cast(unit_price * quantity * (1 - discount) as decimal(20, 4)) as revenue,
        op,
        false as is_deleted,
        source_epoch,
        source_position,
        source_lsn,
        kafka_offset,
        changed_at,
        ingested_at,
        ingest_batch,
        line_number

    from lines

),

{#
    A line taken off an order has no event of its own: the order arrives without it. A
    deleted order arrives as a key and nothing else, and so may one that has come to a new
    key: its lines are unknown until the old key's events are here. Either way, what was held
    for that order and did not just come is gone.
#}
previous as (

    {% if cdc_lakehouse.reads_increment() %}

        select
            held.order_item_id,
            held.order_id,
            held.product_id,
            null as customer_id,
            null as unit_price,
            null as quantity,
            null as discount,
            null as revenue,
            orders.op,
            true as is_deleted,
            orders.source_epoch,
            orders.source_position,
            orders.source_lsn,
            orders.kafka_offset,
            orders.changed_at,
            orders.ingested_at,
            orders.ingest_batch,
            -1 as line_number

        from {{ this }} as held

        inner join orders
            on held.order_id = orders.order_id

        where not held.is_deleted

    {% else %}

        select * from present
        where false

    {% endif %}

),

candidates as (

    select * from present

    union all

    select * from previous

),

ranked as (

    select
        *,
        row_number() over (
            partition by order_item_id
            order by line_number desc
        ) as line_rank

    from candidates

),

order_items as (

    select
        order_item_id,
        order_id,
        product_id,
        customer_id,
        unit_price,
        quantity,
        discount,
        revenue,
        op,
        is_deleted,
        source_epoch,
        source_position,
        source_lsn,
        kafka_offset,
        changed_at,
        ingested_at,
        ingest_batch,
        cast(
            array() as {{ cdc_lakehouse.carried_type() | indent(12) }}
        ) as carried_columns

    from ranked

    where line_rank = 1

)

select * from order_items
