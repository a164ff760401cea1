{{ config(meta={
    'key': 'customer_id',
    'columns': {
        'customer_id': 'bpchar',
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
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'customers')) }}
