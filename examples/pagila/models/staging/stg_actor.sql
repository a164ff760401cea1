{{ config(meta={
    'key': 'actor_id',
    'columns': {
        'actor_id': 'int',
        'first_name': 'string',
        'last_name': 'string',
        'last_update': 'timestamptz',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'actor')) }}
