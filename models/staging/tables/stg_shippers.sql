{{ config(meta={
    'key': 'shipper_id',
    'columns': {
        'shipper_id': 'int',
        'company_name': 'string',
        'phone': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'shippers')) }}
