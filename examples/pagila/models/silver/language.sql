{{ config(unique_key='language_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_language')) }}
