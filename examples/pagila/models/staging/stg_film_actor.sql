{{ config(meta={
    'key': 'film_actor_key',
    'key_columns': ['actor_id', 'film_id'],
    'columns': {
        'actor_id': 'int',
        'film_id': 'int',
        'last_update': 'timestamptz',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'film_actor')) }}
