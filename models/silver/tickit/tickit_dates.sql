{{ config(unique_key='dateid') }}

{{ current_rows(ref('stg_tickit_dates')) }}
