{{ config(unique_key='employee_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_employees')) }}
