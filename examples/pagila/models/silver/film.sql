{{ config(unique_key='film_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_film')) }}
