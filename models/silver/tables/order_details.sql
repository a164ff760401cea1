{{ config(unique_key='order_detail_id') }}

{{ current_rows(ref('stg_order_details')) }}
