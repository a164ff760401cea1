{{ config(unique_key='territory_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_territories')) }}
