{{ config(unique_key='salesid') }}

{{ current_rows(ref('stg_tickit_sales')) }}
