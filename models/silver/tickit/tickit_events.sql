{{ config(unique_key='eventid') }}

{{ current_rows(ref('stg_tickit_events')) }}
