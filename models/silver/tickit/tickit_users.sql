{{ config(unique_key='userid') }}

{{ current_rows(ref('stg_tickit_users')) }}
