{{ config(meta={
    'key': 'order_id',
    'columns': {
        'order_id': 'int',
        'customer_id': 'bpchar',
        'employee_id': 'int',
        'order_date': 'date',
        'required_date': 'date',
        'shipped_date': 'date',
        'ship_via': 'int',
        'freight': 'decimal(12,4)',
        'ship_name': 'string',
        'ship_address': 'string',
        'ship_city': 'string',
        'ship_region': 'string',
        'ship_postal_code': 'string',
        'ship_country': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'orders')) }}
