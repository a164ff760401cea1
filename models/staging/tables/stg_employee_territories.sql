{{ config(meta={
    'key': 'employee_territory_id',
    'key_columns': ['employee_id', 'territory_id'],
    'columns': {
        'employee_id': 'int',
        'territory_id': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'employee_territories')) }}
