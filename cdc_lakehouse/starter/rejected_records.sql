{# The records that are no change events, by topic; without any there are no rows. #}
{{ config(unique_key='topic') }}

select
    coalesce(topic, 'unknown') as topic,
    count(*) as rejected_records,
    max(ingested_at) as newest_at

from {{ source('bronze', 'rejected_events') }}

group by coalesce(topic, 'unknown')
