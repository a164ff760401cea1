{{ config(unique_key='supplier_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_suppliers')) }}
