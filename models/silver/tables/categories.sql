{{ config(unique_key='category_id') }}

{{ current_rows(ref('stg_categories')) }}
