{{ config(meta={
    'key': 'order_detail_id',
    'key_columns': ['order_id', 'product_id'],
    'columns': {
        'order_id': 'int',
        'product_id': 'int',
        'unit_price': 'decimal(12,4)',
        'quantity': 'int',
        'discount': 'decimal(6,4)',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'order_details')) }}
