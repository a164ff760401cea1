{{ config(meta={
    'key': 'userid',
    'columns': {
        'userid': 'int',
        'username': 'bpchar',
        'firstname': 'string',
        'lastname': 'string',
        'city': 'string',
        'state': 'bpchar',
        'email': 'string',
        'phone': 'bpchar',
        'likesports': 'boolean',
        'liketheatre': 'boolean',
        'likeconcerts': 'boolean',
        'likejazz': 'boolean',
        'likeclassical': 'boolean',
        'likeopera': 'boolean',
        'likerock': 'boolean',
        'likevegas': 'boolean',
        'likebroadway': 'boolean',
        'likemusicals': 'boolean',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'tickit_user')) }}
