{{ config(meta={
    'key': 'shipper_id',
    'columns': {
        'shipper_id': 'int',
        'company_name': 'string',
        'phone': 'string',
    },
}) }}

{{ change_events(source('bronze', 'shippers')) }}
