{{ config(unique_key='catid') }}

{{ current_rows(ref('stg_tickit_categories')) }}
