{{ config(unique_key='supplier_id') }}

{{ current_rows(ref('stg_suppliers')) }}
