{{ config(unique_key='employee_id') }}

{{ current_rows(ref('stg_employees')) }}
