{{ config(unique_key='artist_id', partition_by='nationality') }}

{{ cdc_lakehouse.current_rows(ref('stg_artists')) }}
