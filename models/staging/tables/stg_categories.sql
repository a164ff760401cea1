{{ config(meta={
    'key': 'category_id',
    'columns': {
        'category_id': 'int',
        'category_name': 'string',
        'description': 'string',
        'picture': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'categories')) }}
