{#
    Shares of revenue add up to 1, but for the last digit of each; a discount above 1 makes one
    of them negative. Shares of counts lie between 0 and 1.
#}
with

shares as (

    select
        'revenue_by_customer' as share_of,
        revenue_share

    from {{ ref('revenue_by_customer') }}

    union all

    select
        'revenue_by_product' as share_of,
        revenue_share

    from {{ ref('revenue_by_product') }}

    union all

    select
        'revenue_by_category' as share_of,
        revenue_share

    from {{ ref('revenue_by_category') }}

    union all

    select
        'revenue_by_employee' as share_of,
        revenue_share

    from {{ ref('revenue_by_employee') }}

    union all

    select
        late_shipment_id as share_of,
        late_share as revenue_share

    from {{ ref('late_shipments') }}

),

wrong as (

    select
        share_of,
        min(revenue_share) as lowest,
        max(revenue_share) as highest,
        sum(revenue_share) as total

    from shares

    group by share_of

    having
        case
            when share_of like 'revenue%'
                then abs(sum(revenue_share) - 1) > count(*) * 0.0000000001
            else min(revenue_share) < 0 or max(revenue_share) > 1
        end

)

select * from wrong
