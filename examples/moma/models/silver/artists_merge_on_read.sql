{{ config(
    unique_key='artist_id', partition_by='nationality', tblproperties={'type': 'mor'}
) }}

{{ cdc_lakehouse.current_rows(ref('stg_artists')) }}
