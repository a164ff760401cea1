{{ config(unique_key='customer_id', recompute_by='customer_id') }}

select customer_id, count(*) as orders from {{ ref('orders') }}
where not is_deleted
group by customer_id
