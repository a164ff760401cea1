{{ config(meta={
    'key': 'dateid',
    'columns': {
        'dateid': 'int',
        'caldate': 'date',
        'day': 'string',
        'week': 'int',
        'month': 'string',
        'qtr': 'string',
        'year': 'int',
        'holiday': 'boolean',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'tickit_date')) }}
