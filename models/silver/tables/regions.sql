{{ config(unique_key='region_id') }}

{{ current_rows(ref('stg_regions')) }}
