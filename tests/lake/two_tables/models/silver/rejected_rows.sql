{{ config(materialized='ephemeral') }}

{{ rejected_rows([ref('stg_customers'), ref('stg_orders')]) }}
