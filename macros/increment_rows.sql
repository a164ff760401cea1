{#
    What an increment of a silver table merges (see current_rows).
#}
{% macro increment_rows(events, table) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
with

arrived as (

    select * from {{ events }}
    where rejection is null and {{ arrived_in_this_run(table['bronze']) }}
    {%- if applied_truncates() %}
    union all
    {{ truncated_rows(events, this, arrived_in_this_run(table['bronze'])) | indent(4) }}
    {%- endif %}

),

touched as (

    select distinct {{ key }} from arrived

),

stored as (

    select /*+ broadcast(touched) */
        target.{{ key }},
        target.op,
        target.source_epoch,
        target.source_lsn,
        target.kafka_offset,
        target.changed_at,
        target.carried_columns

    from {{ this }} as target

    left semi join touched
        on target.{{ key }} = touched.{{ key }}

),

compared as (

    select
        event.*,
        {{ standing() | indent(8) }} as standing

    from arrived as event

    left join stored
        on event.{{ key }} = stored.{{ key }}

),

{#
    A delete may be the other half of a key change whose create came first.
#}
deletes as (

    select
        source_epoch,
        min(source_lsn) as lowest_lsn

    from arrived

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
