{{ config(unique_key='listid') }}

{{ cdc_lakehouse.current_rows(ref('stg_tickit_listings')) }}
