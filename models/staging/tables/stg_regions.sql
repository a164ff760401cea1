{{ config(meta={
    'key': 'region_id',
    'columns': {
        'region_id': 'int',
        'region_description': 'bpchar',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'region')) }}
