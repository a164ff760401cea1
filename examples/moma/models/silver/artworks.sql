{{ config(unique_key='artwork_id', partition_by='classification') }}

{{ cdc_lakehouse.current_rows(ref('stg_artworks')) }}
