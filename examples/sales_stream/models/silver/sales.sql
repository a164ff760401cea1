{{ config(unique_key='sale_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_sales')) }}
