{{ config(meta={
    'key': 'category_id',
    'columns': {
        'category_id': 'int',
        'name': 'string',
        'last_update': 'timestamptz',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'category')) }}
