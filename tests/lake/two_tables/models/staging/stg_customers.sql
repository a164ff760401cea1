{{ config(meta={
    'key': 'customer_id', 'columns': {'customer_id': 'string', 'city': 'string'}
}) }}

{{ change_events(source('bronze', 'customers')) }}
