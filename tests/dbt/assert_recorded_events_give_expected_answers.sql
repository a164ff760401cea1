{{ config(enabled=var('cdc_lakehouse_recorded_events', false)) }}

{# The demonstration's lake answers as its source would have. #}
with

answers as (

    select
        customer_id,
        struct(country, count_orders, count_items, total_quantity, revenue) as answer

    from {{ ref('revenue_by_customer') }}

),

expected as (

    select
        customer_id,
        struct(country, count_orders, count_items, total_quantity, revenue) as answer

    from {{ ref('expected_revenue_by_customer') }}

)

select
    answers.customer_id,
    answers.answer,
    expected.customer_id as expected_customer_id,
    expected.answer as expected_answer

from answers

full outer join expected
    on answers.customer_id = expected.customer_id

where not (answers.answer <=> expected.answer)
