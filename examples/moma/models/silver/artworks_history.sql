{{ config(materialized='cdc_history', unique_key='history_id') }}

{{ cdc_lakehouse.row_history(ref('stg_artworks')) }}
