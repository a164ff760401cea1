{{ config(meta={
    'key': 'listid',
    'columns': {
        'listid': 'int',
        'sellerid': 'int',
        'eventid': 'int',
        'dateid': 'int',
        'numtickets': 'int',
        'priceperticket': 'decimal(8,2)',
        'totalprice': 'decimal(8,2)',
        'listtime': 'timestamp(3)',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'tickit_listing')) }}
