{{ config(meta={
    'key': 'product_id',
    'columns': {
        'product_id': 'int',
        'product_name': 'string',
        'supplier_id': 'int',
        'category_id': 'int',
        'quantity_per_unit': 'string',
        'unit_price': 'decimal(12,4)',
        'units_in_stock': 'int',
        'units_on_order': 'int',
        'reorder_level': 'int',
        'discontinued': 'int',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'products')) }}
