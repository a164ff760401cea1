{{ config(meta={
    'key': 'artist_id',
    'columns': {
        'artist_id': 'int',
        'name': 'string',
        'nationality': 'string',
        'gender': 'string',
        'birth_year': 'int',
        'death_year': 'int',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'artists')) }}
