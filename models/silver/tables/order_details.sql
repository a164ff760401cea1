{{ config(unique_key='order_detail_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_order_details')) }}
