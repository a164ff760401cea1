{{ config(unique_key='constituent_id', partition_by='nationality') }}

{{ cdc_lakehouse.current_rows(ref('stg_artists')) }}
