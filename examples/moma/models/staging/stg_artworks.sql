{{ config(meta={
    'key': 'artwork_id',
    'columns': {
        'artwork_id': 'int',
        'title': 'string',
        'artist_id': 'int',
        'date': 'int',
        'medium': 'string',
        'dimensions': 'string',
        'acquisition_date': 'date',
        'credit': 'string',
        'catalogue': 'string',
        'department': 'string',
        'classification': 'string',
        'object_number': 'string',
        'diameter_cm': 'decimal(10,4)',
        'circumference_cm': 'decimal(10,4)',
        'height_cm': 'decimal(10,4)',
        'length_cm': 'decimal(10,4)',
        'width_cm': 'decimal(10,4)',
        'depth_cm': 'decimal(10,4)',
        'weight_kg': 'decimal(10,4)',
        'durations': 'int',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'artworks')) }}
