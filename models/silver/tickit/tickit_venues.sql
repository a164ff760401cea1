{{ config(unique_key='venueid') }}

{{ current_rows(ref('stg_tickit_venues')) }}
