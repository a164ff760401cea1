{{ config(meta={
    'key': 'territory_id',
    'columns': {
        'territory_id': 'string',
        'territory_description': 'bpchar',
        'region_id': 'int',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'territories')) }}
