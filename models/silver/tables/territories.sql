{{ config(unique_key='territory_id') }}

{{ current_rows(ref('stg_territories')) }}
