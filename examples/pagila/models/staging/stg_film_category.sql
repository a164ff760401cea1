{{ config(meta={
    'key': 'film_category_key',
    'key_columns': ['film_id', 'category_id'],
    'columns': {
        'film_id': 'int',
        'category_id': 'int',
        'last_update': 'timestamptz',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'film_category')) }}
