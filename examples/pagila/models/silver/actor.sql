{{ config(unique_key='actor_id') }}

{{ cdc_lakehouse.current_rows(ref('stg_actor')) }}
