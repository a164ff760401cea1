{{ config(unique_key='listid') }}

{{ current_rows(ref('stg_tickit_listings')) }}
