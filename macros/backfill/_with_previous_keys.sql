{#
    `keys` (a relation with the key's column) and the keys that theirs changed from, and so on: a
    relation. A delete and a create with one position are a key change. Runs statements.
#}
{% macro _with_previous_keys(table, keys) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set bound = cdc_lakehouse.arrived_until_this_run(table['bronze']) -%}
    {%- set of_changes -%}
        left semi join (
            select source_epoch, source_position
            from {{ cdc_lakehouse.bronze_events(table['bronze_relation']) }}
            where op in ('c', 'd') and {{ bound }}
            group by source_epoch, source_position
            having count(distinct op) > 1
        ) as moved
            on
                bronze.op in ('c', 'd')
                and bronze.source_epoch = moved.source_epoch
                and bronze.source_position = moved.source_position
    {%- endset -%}
    {%- set query -%}
        select distinct begun as {{ key }}, ended as __cdc_previous
        from (
            select
                collect_set(if(op = 'c', {{ key }}, null)) as keys_begun,
                collect_set(if(op = 'd', {{ key }}, null)) as keys_ended
            from ({{ cdc_lakehouse.change_events(table['bronze_relation'], table, of_changes) }})
            where {{ bound }}
            group by source_epoch, source_position
        )
        lateral view explode(keys_begun) creates as begun
        lateral view explode(keys_ended) deletes as ended
        where begun <> ended
    {%- endset -%}
    {%- set changes = cdc_lakehouse.scratch_rows('key_changes', query) -%}
    {%- set found = ['select ' ~ key ~ ' from ' ~ keys] -%}
    {#- a chain of key changes ends where the history does; a bound, lest a build hangs -#}
    {%- for step in range(1, 100) if found | length == step -%}
        {%- set previous -%}
            select distinct __cdc_previous as {{ key }}
            from {{ changes }}
            where
                {{ key }} in ({{ found[-1] }})
                and __cdc_previous not in ({{ found | join(' union all ') }})
        {%- endset -%}
        {%- if run_query(previous ~ ' limit 1').rows -%}
            {%- do found.append('select ' ~ key ~ ' from ' ~ cdc_lakehouse.scratch_rows('previous_' ~ step, previous)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return('(' ~ found | join(' union all ') ~ ')') }}
{%- endmacro %}
