{{ config(meta={
    'key': 'sale_id',
    'columns': {
        'sale_id': 'int',
        'customer_id': 'int',
        'amount': 'decimal(10,2)',
        'sold_at': 'timestamp',
        'country': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'sales')) }}
