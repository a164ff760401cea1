{#
    What an increment of a silver table merges (see current_rows).
#}
{% macro increment_rows(events, table) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set compared = in_steps(this.identifier ~ '__compared', compared_events(
    in_steps(this.identifier ~ '__arrived', arrived_events(events, table)), table
)) -%}
with

compared as (

    {{ compared | indent(4) }}

),

{#
    A delete may be the other half of a key change whose create came first.
#}
deletes as (

    select
        source_epoch,
        min(source_lsn) as lowest_lsn

    from compared

    where op = 'd'

    group by source_epoch

),

awaiting as (

    select /*+ broadcast(deletes) */ target.{{ key }}

    from {{ this }} as target

    inner join deletes
        on
            target.source_epoch = deletes.source_epoch
            and target.source_lsn >= deletes.lowest_lsn

    where exists(target.carried_columns, column_name -> column_name like '%?')

),

unclear as (

    select {{ key }} from compared
    where standing = 'unclear'
    union
    select {{ key }} from awaiting

),

newer as (

    select compared.*

    from compared

    left anti join unclear
        on compared.{{ key }} = unclear.{{ key }}

    where compared.standing = 'newer'

),

{{ newest_versions('newer', table) }},

candidates as (

    select
        {{ row_columns(table, unknown_in_life='<') }}

    from newer_newest

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

)

select * from candidates
{%- endmacro %}
