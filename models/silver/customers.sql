{{ config(unique_key='customer_id') }}

{{ current_rows(ref('stg_customers')) }}
