{{ config(unique_key='category_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_category')) }}
