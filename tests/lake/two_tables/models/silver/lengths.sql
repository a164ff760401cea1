{{ config(unique_key='name_id') }}

select name_id, length(name_id) as name_length from {{ ref('names') }}
where {{ 'true' if not reads_increment() else arrived_in_this_run('names') }}
