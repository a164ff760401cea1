{{ config(unique_key='eventid') }}

{{ cdc_lakehouse.current_rows(ref('stg_tickit_events')) }}
