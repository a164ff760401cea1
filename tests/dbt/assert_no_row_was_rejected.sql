{{ config(severity='warn') }}

{# Warns while a quarantine holds anything: someone has to look (docs/runbook.md). #}
with

rejected as (

    select
        'silver.rejected_rows' as quarantine,
        reason

    from {{ ref('rejected_rows') }}

    union all

    select
        'bronze.rejected_events' as quarantine,
        reason

    from {{ source('bronze', 'rejected_events') }}

),

rejections as (

    select
        quarantine,
        reason,
        count(*) as count_rows

    from rejected

    group by quarantine, reason

)

select * from rejections
