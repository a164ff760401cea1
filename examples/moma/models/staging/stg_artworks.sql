{{ config(meta={
    'key': 'object_id',
    'columns': {
        'object_id': 'int',
        'title': 'string',
        'constituent_id': 'string',
        'artist': 'string',
        'nationality': 'string',
        'date_made': 'string',
        'medium': 'string',
        'dimensions': 'string',
        'credit_line': 'string',
        'accession_number': 'string',
        'classification': 'string',
        'department': 'string',
        'date_acquired': 'date',
    },
    'source_names': {'date_made': 'date'},
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'artworks')) }}
