{{ config(unique_key='employee_territory_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_employee_territories')) }}
