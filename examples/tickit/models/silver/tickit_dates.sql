{{ config(unique_key='dateid') }}

{{ cdc_lakehouse.current_rows(ref('stg_tickit_dates')) }}
