{{ config(unique_key='userid') }}

{{ cdc_lakehouse.current_rows(ref('stg_tickit_users')) }}
