{{ config(meta={
    'key': 'employee_id',
    'columns': {
        'employee_id': 'int',
        'last_name': 'string',
        'first_name': 'string',
        'title': 'string',
        'title_of_courtesy': 'string',
        'birth_date': 'date',
        'hire_date': 'date',
        'address': 'string',
        'city': 'string',
        'region': 'string',
        'postal_code': 'string',
        'country': 'string',
        'home_phone': 'string',
        'extension': 'string',
        'photo': 'string',
        'notes': 'string',
        'reports_to': 'int',
        'photo_path': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'employees')) }}
