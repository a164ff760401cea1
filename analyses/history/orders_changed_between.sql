-- The orders that builds changed between two times, as they were at the second, deletes
-- included (docs/storage.md): --vars '{changed_from: …, changed_to: …}'.
-- Without them, all.
select
    order_id,
    op,
    is_deleted,
    customer_id,
    shipped_date,
    changed_at

from
    hudi_table_changes(
        '{{ ref("orders") }}',
        'latest_state',
        '{{ var("changed_from", "2000-01-01 00:00:00") }}',
        '{{ var("changed_to", "2999-12-31 00:00:00") }}'
    )

order by order_id
