{{ config(meta={
    'key': 'order_id',
    'columns': {
        'order_id': 'int',
        'customer_id': 'bpchar',
        'order_date': 'date',
        'required_date': 'date',
        'shipped_date': 'date',
        'order_items': 'json',
        'products': 'json',
        'customer': 'json',
        'employee': 'json',
        'shipper': 'json',
        'shipment': 'json',
        'updated_at': 'timestamptz',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'cdc_events')) }}
