{{ config(unique_key='venueid') }}

{{ cdc_lakehouse.current_rows(ref('stg_tickit_venues')) }}
