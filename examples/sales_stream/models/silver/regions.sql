{{ config(unique_key='country') }}

{{ cdc_lakehouse.current_rows(ref('stg_regions')) }}
