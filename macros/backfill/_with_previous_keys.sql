{# `keys` (a relation with the key's column) and the keys that theirs changed from, and so on: a relation. #}
{% macro _with_previous_keys(table, keys) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set query -%}
        with
        moved as (
            select {{ key }}, op, source_epoch, source_position
            from {{ table['events'] }}
            {#- before any row is parsed #}
            left semi join (
                select source_epoch, source_position from {{ table['bronze_relation'] }}
                where op in ('c', 'd') and {{ table['until'] }}
                group by source_epoch, source_position having count(distinct op) > 1
            ) using (source_epoch, source_position)
            where op in ('c', 'd') and {{ table['until'] }}
        )

        select distinct created.{{ key }}, deleted.{{ key }} as __cdc_previous
        from moved as created
        inner join moved as deleted using (source_epoch, source_position)
        where created.op = 'c' and deleted.op = 'd' and created.{{ key }} <> deleted.{{ key }}
    {%- endset -%}
    {%- set changes, found = cdc_lakehouse.scratch_rows('key_changes', query), ['select ' ~ key ~ ' from ' ~ keys] -%}
    {#- a chain of key changes ends where the history does; a bound, lest a build hangs -#}
    {%- for step in range(1, 100) if found | length == step -%}
        {%- set previous -%}
            select distinct __cdc_previous as {{ key }} from {{ changes }}
            where {{ key }} in ({{ found[-1] }}) and __cdc_previous not in ({{ found | join(' union all ') }})
        {%- endset -%}
        {%- if run_query(previous ~ ' limit 1').rows -%}
            {%- do found.append('select ' ~ key ~ ' from ' ~ cdc_lakehouse.scratch_rows('previous_' ~ step, previous)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return('(' ~ found | join(' union all ') ~ ')') }}
{%- endmacro %}
