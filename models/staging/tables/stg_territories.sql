{{ config(meta={
    'key': 'territory_id',
    'columns': {
        'territory_id': 'string',
        'territory_description': 'bpchar',
        'region_id': 'int',
    },
}) }}

{{ change_events(source('bronze', 'territories')) }}
