{{ config(meta={
    'key': 'region_id',
    'columns': {
        'region_id': 'int',
        'region_description': 'bpchar',
    },
}) }}

{{ change_events(source('bronze', 'region')) }}
