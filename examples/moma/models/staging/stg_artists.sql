{{ config(meta={
    'key': 'constituent_id',
    'columns': {
        'constituent_id': 'int',
        'display_name': 'string',
        'artist_bio': 'string',
        'nationality': 'string',
        'gender': 'string',
        'begin_date': 'int',
        'end_date': 'int',
        'wiki_qid': 'string',
        'ulan': 'string',
    },
}) }}

{{ cdc_lakehouse.change_events(source('bronze', 'artists')) }}
