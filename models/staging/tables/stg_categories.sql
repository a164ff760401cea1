{{ config(meta={
    'key': 'category_id',
    'columns': {
        'category_id': 'int',
        'category_name': 'string',
        'description': 'string',
        'picture': 'string',
    },
}) }}

{{ change_events(source('bronze', 'categories')) }}
