{{ config(meta={
    'key': 'salesid',
    'columns': {
        'salesid': 'int',
        'listid': 'int',
        'sellerid': 'int',
        'buyerid': 'int',
        'eventid': 'int',
        'dateid': 'int',
        'qtysold': 'int',
        'pricepaid': 'decimal(8,2)',
        'commission': 'decimal(8,2)',
        'saletime': 'timestamp(3)',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'tickit_sale')) }}
