{{ config(unique_key='catid') }}

{{ cdc_lakehouse.current_rows(ref('stg_tickit_categories')) }}
