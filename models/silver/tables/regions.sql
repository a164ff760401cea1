{{ config(unique_key='region_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_regions')) }}
