{{ config(unique_key='order_id') }}

{{ current_rows(ref('stg_orders')) }}
