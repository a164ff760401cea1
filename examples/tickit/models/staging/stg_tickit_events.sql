{{ config(meta={
    'key': 'eventid',
    'columns': {
        'eventid': 'int',
        'venueid': 'int',
        'catid': 'int',
        'dateid': 'int',
        'eventname': 'string',
        'starttime': 'timestamp',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'tickit_event')) }}
