{{ config(meta={
    'key': 'language_id',
    'columns': {
        'language_id': 'int',
        'name': 'bpchar',
        'last_update': 'timestamptz',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'language')) }}
