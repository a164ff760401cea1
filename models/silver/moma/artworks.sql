{{ config(
    unique_key='object_id', partition_by='nationality', tblproperties={'type': 'mor'}
) }}

{{ current_rows(ref('stg_artworks')) }}
