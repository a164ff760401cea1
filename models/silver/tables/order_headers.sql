{{ config(unique_key='order_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_order_headers')) }}
