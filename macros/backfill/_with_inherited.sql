{# `states` (a relation, see row_states) with the values that a create left out. #}
{% macro _with_inherited(table, states) -%}
    {%- set key, known, stored = '`' ~ table['key'] ~ '`', [], [] -%}
    {%- for column in table['unchanged'] -%}
        {%- set state = '__cdc_value_%s' % loop.index -%}
        {%- do known.append("if(%s.is_known, struct('%s', %s.value), null)" % (state, column, state)) -%}
        {%- do stored.append("'%s', `%s`" % (column, column)) if column in table['stored'] -%}
    {%- endfor -%}
    {%- set known = 'map_from_entries(array_compact(array(%s)))' % known | join(', ') -%}
    {%- set lacks = 'size(%s) < ' ~ table['unchanged'] | length -%}
    {%- set begun -%}
        select distinct {{ key }}, __cdc_incarnation.source_epoch, __cdc_incarnation.source_position
        from {{ states }}
        where __cdc_incarnation.op = 'c' and not __cdc_overtakes and not is_deleted and {{ lacks % known }}
    {%- endset -%}
    {%- if not table['unchanged'] or not run_query(begun ~ ' limit 1').rows -%}{{ return(states) }}{%- endif -%}
    {%- set query -%}
        select {{ key }}, source_epoch, source_position, ended.*
        from (
            {#- one, if two deletes ever have one position #}
            select begun.{{ key }}, begun.source_epoch, begun.source_position, min_by(__cdc_ended, string(__cdc_ended.from_key)) as ended
            from ({{ begun }}) as begun
            left outer join (
                select op, source_epoch, source_position, struct(
                    {{ key }} as from_key, __cdc_batch as ingest_batch,
                    lag(__cdc_incarnation) over of_key as incarnation, lag({{ known }}) over of_key as known,
                    {#- a create or a delete of this run: what is stored was inherited along other key changes #}
                    greatest(ingest_batch, (lag(__cdc_incarnation) over of_key).ingest_batch) > {{ table['read_to'] }} as is_new
                ) as __cdc_ended
                from {{ states }}
                where not __cdc_overtakes
                window of_key as (partition by {{ key }} order by __cdc_number desc)
            ) as deletes
                on
                    deletes.op = 'd' and begun.{{ key }} <> __cdc_ended.from_key
                    and begun.source_epoch = deletes.source_epoch and begun.source_position = deletes.source_position
            group by all
        )
    {%- endset -%}
    {%- set at = namespace(links=cdc_lakehouse.scratch_rows('links_0', query), is_done=false) -%}
    {%- set merged = "map_concat({0}, map_filter({1}, (name, _) -> not coalesce(map_contains_key({0}, name), false)))" -%}
    {%- set merged = 'if({0} is null or {1} is null, coalesce({0}, {1}), ' ~ merged ~ ')' -%}
    {#- a bound, lest a build hangs: a chain of 1,024 key changes -#}
    {%- for step in range(1, 11) if not at.is_done -%}
        {%- set is_open = 'from_key is not null and coalesce(' ~ lacks % 'known' ~ ', true)' -%}
        {%- if run_query('select 1 from ' ~ at.links ~ ' where ' ~ is_open ~ ' limit 1').rows -%}
            {%- set query -%}
                select
                    link.{{ key }}, link.source_epoch, link.source_position, further.from_key,
                    greatest(link.ingest_batch, further.ingest_batch) as ingest_batch, further.incarnation,
                    {{ merged.format('link.known', 'further.known') }} as known,
                    coalesce(link.is_new, false) or coalesce(further.is_new, false) as is_new
                from {{ at.links }} as link
                left outer join {{ at.links }} as further
                    on
                        link.from_key = further.{{ key }}
                        and link.incarnation.source_epoch = further.source_epoch
                        and link.incarnation.source_position = further.source_position
            {%- endset -%}
            {%- set at.links = cdc_lakehouse.scratch_rows('links_' ~ step, query) -%}
        {%- else -%}
            {%- set at.is_done = true -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set has_stored = table['is_kept'] and stored -%}
    (
        select
            {%- for name in run_query('describe query select * from ' ~ states).columns['col_name'].values() %}
            {%- set column = table['unchanged'][name.removeprefix('__cdc_value_') | int - 1] %}
            {%- if name == '__cdc_batch' %}
            greatest(states.__cdc_batch, max(link.ingest_batch) over (partition by states.{{ key }})) as __cdc_batch
            {%- elif name.startswith('__cdc_value_') %}
            if(states.{{ name }}.is_known or not coalesce(map_contains_key(__cdc_given, '{{ column }}'), false), states.{{ name }},
                struct(states.{{ name }}.sequence, true as is_known, 2 as part, __cdc_given['{{ column }}'] as value)) as {{ name }}
            {%- else %}
            states.`{{ name }}`
            {%- endif %}
            {{- ',' if not loop.last }}
            {%- endfor %}
        from (
            select *, if(__cdc_incarnation.op = 'c', __cdc_incarnation, null) as __cdc_begun from {{ states }}
        ) as states
        left outer join {{ at.links }} as link
            on
                states.{{ key }} = link.{{ key }} and __cdc_begun.source_epoch = link.source_epoch
                and __cdc_begun.source_position = link.source_position
        {%- if has_stored %}
        left outer join (
            {%- if table['is_history'] %}
            select {{ key }}, from_epoch as epoch, from_position as position, map({{ stored | join(', ') }}) as known
            from {{ this }}
            where op = 'c'
            {%- else %}
            select {{ key }}, __cdc_entry.sequence.source_epoch as epoch, __cdc_entry.sequence.position, map_from_entries(collect_list(
                struct(__cdc_entry.column_name, map({{ stored | join(', ') }})[__cdc_entry.column_name])
            )) as known
            from {{ this }}
            lateral view explode(carried_columns) entries as __cdc_entry
            where __cdc_entry.sequence.op = 'c' and __cdc_entry.is_known
            group by all
            {%- endif %}
        ) as stored
            on
                states.{{ key }} = stored.{{ key }} and __cdc_begun.source_epoch = stored.epoch
                and __cdc_begun.source_position = stored.position
        {%- endif %}
        lateral view explode(array({{ merged.format('link.known', 'if(link.is_new, null, stored.known)') if has_stored else 'link.known' }})) given as __cdc_given
    )
{%- endmacro %}
