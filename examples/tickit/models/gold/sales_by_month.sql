{{ config(unique_key='sale_month') }}

with

sales as (

    select
        dateid,
        qtysold,
        pricepaid,
        commission

    from {{ ref('tickit_sales') }}

    where not is_deleted

),

dates as (

    select
        dateid,
        caldate

    from {{ ref('tickit_dates') }}

    where not is_deleted

),

dated_sales as (

    select
        sales.qtysold,
        sales.pricepaid,
        sales.commission,
        coalesce(trunc(dates.caldate, 'month'), date '1900-01-01') as sale_month

    from sales

    left outer join dates
        on sales.dateid = dates.dateid

),

sales_by_month as (

    select
        sale_month,
        cast(sum(pricepaid) as decimal(28, 2)) as revenue,
        cast(sum(commission) as decimal(28, 2)) as commission,
        count(*) as count_sales,
        sum(qtysold) as tickets_sold

    from dated_sales

    group by sale_month

)

select * from sales_by_month
