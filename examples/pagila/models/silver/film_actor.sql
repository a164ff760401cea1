{{ config(unique_key='film_actor_key') }}

{{ cdc_lakehouse.current_rows(ref('stg_film_actor')) }}
