{{ config(unique_key='product_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_products')) }}
