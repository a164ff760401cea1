{{ config(unique_key='event_id') }}

{{ cdc_lakehouse.rejected_rows([
    ref('stg_sales'),
    ref('stg_regions'),
]) }}
