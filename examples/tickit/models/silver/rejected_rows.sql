{{ config(unique_key='event_id') }}

{{ cdc_lakehouse.rejected_rows([
    ref('stg_tickit_categories'),
    ref('stg_tickit_dates'),
    ref('stg_tickit_events'),
    ref('stg_tickit_listings'),
    ref('stg_tickit_sales'),
    ref('stg_tickit_users'),
    ref('stg_tickit_venues'),
]) }}
