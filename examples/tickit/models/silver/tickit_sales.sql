{{ config(unique_key='salesid') }}

{{ cdc_lakehouse.current_rows(ref('stg_tickit_sales')) }}
