-- What happened to one order, event by event, as the source's log has it
-- (docs/storage.md): --vars '{order_id: 10248}'. An event that was delivered again
-- stands here again.
select
    op,
    changed_at,
    ingested_at,
    source_epoch,
    source_position,
    kafka_offset,
    customer_id,
    shipped_date

from {{ ref('stg_orders') }}

where order_id = {{ var('order_id', 10248) }}

order by source_epoch, source_position, topic_generation, kafka_offset
