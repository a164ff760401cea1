{#
    The rows that have become newer than the stored ones, from events with their standing (see
    compared_events), and a row with the operation `?` for each key that is unclear, or whose
    former key got late events (`heirs`, relations of keys).
#}
{% macro newer_rows(compared, table, traits, heirs) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
with

compared as (

    {{ compared | indent(4) }}

),

{% if traits['unsettled'] %}
{#
    A delete may be the other half of a key change whose create came first, and a late event
    may tell what the old key's row was.
#}
formers as (

    select
        source_epoch,
        min(coalesce(source_lsn, 0)) as lowest_lsn

    from compared

    where op = 'd' or standing <> 'newer'

    group by source_epoch

),

awaiting as (

    select /*+ broadcast(formers) */ target.{{ key }}

    from {{ this }} as target

    inner join formers
        on
            target.source_epoch = formers.source_epoch
            and target.source_lsn >= formers.lowest_lsn

    where exists(target.carried_columns, column_name -> column_name like '%?')

),

unclear as (

    select {{ key }} from compared
    where standing = 'unclear'
    union
    select {{ key }} from awaiting
    {%- for keys in heirs %}
    union
    select {{ key }} from {{ keys }}
    {%- endfor %}

),

{% endif %}
newer as (

    select compared.*

    from compared
    {%- if traits['unsettled'] %}

    left anti join unclear
        on compared.{{ key }} = unclear.{{ key }}
    {%- endif %}

    where compared.standing = 'newer'

),

{{ newest_versions('newer', table, traits) }},

candidates as (

    select
        {{ row_columns(table, unknown_in_life='<') }}

    from newer_newest
    {%- if traits['unsettled'] %}

    union all

    select
        {%- for column in table['columns'] %}
        {{ key if column == table['key'] else 'null' }},
        {%- endfor %}
        '?' as op,
        {%- for column in position_columns()[1:] %}
        null as {{ column }},
        {%- endfor %}
        array() as carried_columns

    from unclear
    {%- endif %}

)

select * from candidates
{%- endmacro %}
