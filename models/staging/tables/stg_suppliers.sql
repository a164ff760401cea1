{{ config(meta={
    'key': 'supplier_id',
    'columns': {
        'supplier_id': 'int',
        'company_name': 'string',
        'contact_name': 'string',
        'contact_title': 'string',
        'address': 'string',
        'city': 'string',
        'region': 'string',
        'postal_code': 'string',
        'country': 'string',
        'phone': 'string',
        'fax': 'string',
        'homepage': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'suppliers')) }}
