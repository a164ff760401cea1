{{ config(unique_key='order_item_id') }}

{{ cdc_lakehouse.child_rows(
    ref('orders'),
    array='order_items',
    elements={
        'product_id': 'int',
        'unit_price': 'decimal(12, 4)',
        'quantity': 'decimal(10, 2)',
        'discount': 'decimal(6, 4)',
    },
    id='order_item_id',
    key=['order_id', 'product_id'],
    parent_columns=['customer_id'],
    computed={'revenue': 'cast(unit_price * quantity * (1 - discount) as decimal(20, 4))'},
) }}
