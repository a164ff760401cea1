{{ config(meta={
    'key': 'venueid',
    'columns': {
        'venueid': 'int',
        'venuename': 'string',
        'venuecity': 'string',
        'venuestate': 'bpchar',
        'venueseats': 'int',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'tickit_venue')) }}
