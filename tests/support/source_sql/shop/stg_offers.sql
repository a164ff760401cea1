{{ config(meta={
    'key': 'offers_key',
    'key_columns': ['part', 'offer_id'],
    'columns': {
        'offer_id': 'bigint',
        'part': 'int',
        'customer_id': 'string',
        'size': 'decimal(10,2)',
    },
    'ignored_fields': ['twice'],
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'offers')) }}
