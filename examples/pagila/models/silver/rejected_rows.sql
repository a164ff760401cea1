{{ config(unique_key='event_id') }}

{{ cdc_lakehouse.rejected_rows([
    ref('stg_actor'),
    ref('stg_category'),
    ref('stg_film'),
    ref('stg_film_actor'),
    ref('stg_film_category'),
    ref('stg_language'),
]) }}
