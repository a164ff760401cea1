{{ config(unique_key='event_id') }}

{# One line for each staging model (stop_at_unlisted_model checks it). #}
{%- set staging_models = [
    ref('stg_orders'),
    ref('stg_customers'),
    ref('stg_products'),
] %}
{%- if var('cdc_lakehouse_base_tables') %}
    {%- do staging_models.extend([
        ref('stg_categories'),
        ref('stg_employee_territories'),
        ref('stg_employees'),
        ref('stg_order_details'),
        ref('stg_order_headers'),
        ref('stg_regions'),
        ref('stg_shippers'),
        ref('stg_suppliers'),
        ref('stg_territories'),
    ]) %}
{%- endif %}

{{ cdc_lakehouse.rejected_rows(staging_models) }}
