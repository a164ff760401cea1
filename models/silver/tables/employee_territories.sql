{{ config(unique_key='employee_territory_id') }}

{{ current_rows(ref('stg_employee_territories')) }}
