{{ config(unique_key='shipper_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_shippers')) }}
