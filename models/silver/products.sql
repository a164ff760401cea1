{{ config(unique_key='product_id') }}

{{ current_rows(ref('stg_products')) }}
