{{ config(unique_key='shipper_id') }}

{{ current_rows(ref('stg_shippers')) }}
