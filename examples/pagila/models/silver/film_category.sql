{{ config(unique_key='film_category_key') }}

{{ cdc_lakehouse.current_rows(ref('stg_film_category')) }}
