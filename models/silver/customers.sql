{{ config(unique_key='customer_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_customers')) }}
