{{ config(meta={
    'key': 'country',
    'columns': {
        'country': 'string',
        'region': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'regions')) }}
