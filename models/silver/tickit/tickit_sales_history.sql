{{ config(materialized='cdc_history', unique_key='history_id') }}

{{ row_history(ref('stg_tickit_sales')) }}
