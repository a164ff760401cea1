{{ config(meta={
    'key': 'film_id',
    'columns': {
        'film_id': 'int',
        'title': 'string',
        'description': 'string',
        'release_year': 'int',
        'language_id': 'int',
        'original_language_id': 'int',
        'rental_duration': 'int',
        'rental_rate': 'decimal(4,2)',
        'length': 'int',
        'replacement_cost': 'decimal(5,2)',
        'rating': 'string',
        'last_update': 'timestamptz',
        'special_features': 'json',
        'fulltext': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'film')) }}
