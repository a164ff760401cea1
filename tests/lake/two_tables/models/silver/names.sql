{#
    A model of two bronze tables.
#}
{{ config(unique_key='name_id') }}

select concat('order ', order_id) as name_id, ingest_batch
from {{ ref('stg_orders') }}
where {{ 'true' if not reads_increment() else arrived_in_this_run('cdc_events') }}

union all

select concat('customer ', customer_id) as name_id, ingest_batch
from {{ ref('stg_customers') }}
where {{ 'true' if not reads_increment() else arrived_in_this_run('customers') }}
