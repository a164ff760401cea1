{#
    The settled rows of a model as they are, and of the unsettled keys those that their whole
    history gives, where they differ from the stored ones (see settled_rows).
#}
{% macro refolded_rows(table, rows, unsettled, columns, filled, keys, former) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
with

refolded as (

    select
        {{ row_columns(
            table,
            unknown_in_life='<' if reads_increment() else '?',
            former='former' if former else none
        ) }}

    from {{ filled }} as filled
    {%- if former %}

    left join {{ former }} as former
        on
            filled.life_start.epoch = former.former_epoch
            and filled.life_start.lsn = former.former_lsn
    {%- endif %}

    where filled.is_newest

),

wanted as (

    select refolded.*

    from refolded

    left semi join {{ keys }} as keys
        on refolded.{{ key }} = keys.{{ key }}

),
{%- if reads_increment() %}

changed as (

    select wanted.*

    from wanted

    left join {{ this }} as stored
        on wanted.{{ key }} = stored.{{ key }}

    where
        stored.{{ key }} is null
        {%- for column in columns if column not in ['ingested_at', 'ingest_batch', table['key']] %}
        {%- if column == 'carried_columns' %}
        or transform(wanted.carried_columns, name -> replace(name, '<', ''))
            <> transform(stored.carried_columns, name -> replace(name, '<', ''))
        {%- elif column in position_columns() %}
        or not wanted.`{{ column }}` <=> stored.`{{ column }}`
        {%- else %}
        or (
            not wanted.`{{ column }}` <=> stored.`{{ column }}`
            and not array_contains(wanted.carried_columns, '{{ column }}<')
        )
        {%- endif %}
        {%- endfor %}

),
{%- else %}

changed as (

    select * from wanted

),
{%- endif %}

settled as (

    select {{ columns | join(', ') }} from {{ rows }}
    where not ({{ unsettled }})
    union all
    select {{ columns | join(', ') }} from changed

)

select * from settled
{%- endmacro %}
