{{ config(meta={
    'key': 'catid',
    'columns': {
        'catid': 'int',
        'catgroup': 'string',
        'catname': 'string',
        'catdesc': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'tickit_category')) }}
