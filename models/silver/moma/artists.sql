{{ config(unique_key='constituent_id', partition_by='nationality') }}

{{ current_rows(ref('stg_artists')) }}
