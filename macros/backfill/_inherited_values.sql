{#
    Of each create in `states` (a relation, see row_states) that left values out, those of the row that
    its key changed from: a relation, none where there is no such create. A delete and a create with
    one position are a key change, and the values are those of the state that the delete ended.
    `__cdc_lacks` names the columns that remain unknown. Runs statements.

    That state may lack the same value, as its own key change left it out: so each key's
    values are looked up in the ones found, and each time the links get twice as long. What no event
    tells any more, because days of bronze are dropped, this table has stored with the key (`is_kept`).
#}
{% macro _inherited_values(table, states, is_history, is_kept) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set carried = '`' ~ table['carried'] | join('`, `') ~ '`' -%}
    {%- set unknown = {} -%}
    {%- for column in table['carried'] -%}
        {%- do unknown.update({column: 'not coalesce(__cdc_value_' ~ loop.index ~ '.is_known, false)'}) -%}
    {%- endfor -%}
    {%- set begun -%}
        select distinct {{ key }}, __cdc_incarnation.source_epoch, __cdc_incarnation.source_position
        from {{ states }}
        where __cdc_incarnation.op = 'c' and not __cdc_overtakes and not is_deleted and ({{ unknown.values() | join(' or ') }})
    {%- endset -%}
    {%- if not table['carried'] or not run_query(begun ~ ' limit 1').rows -%}{{ return(none) }}{%- endif -%}
    {%- set query -%}
        select
            {{ key }}, source_epoch, source_position, ended.__cdc_key, ended.ingest_batch, ended.__cdc_incarnation,
            coalesce(
                ended.__cdc_lacks, array('{{ table['carried'] | join("', '") }}')
            ) as __cdc_lacks,
            ended.`{{ table['carried'] | join('`, ended.`') }}`
        from (
            select
                begun.{{ key }}, begun.source_epoch, begun.source_position,
                {#- one, if two deletes ever have one position #}
                min_by(struct(ended.*), cast(ended.__cdc_key as string)) as ended
            from ({{ begun }}) as begun
            left join (
                select
                    {{ key }} as __cdc_key, source_epoch as __cdc_epoch, source_position as __cdc_position,
                    ingest_batch, __cdc_before.*
                from (
                    select
                        *,
                        lag(struct(
                            __cdc_incarnation, {{ cdc_lakehouse.columns_where(unknown) | indent(28) }} as __cdc_lacks
                            {%- for column in table['carried'] %},
                            __cdc_value_{{ loop.index }}.value as `{{ column }}`
                            {%- endfor %}
                        )) over (
                            partition by {{ key }} order by __cdc_place, __cdc_part desc, __cdc_delivery, event_id
                        ) as __cdc_before
                    from (
                        select
                            {{ key }}, __cdc_place, __cdc_part, __cdc_delivery, event_id, op, source_epoch,
                            source_position, ingest_batch, __cdc_incarnation
                            {%- for _ in table['carried'] %}, __cdc_value_{{ loop.index }}{% endfor %}
                        from {{ states }}
                        where not __cdc_overtakes
                    )
                )
                where op = 'd'
            ) as ended
                on
                    begun.source_epoch = ended.__cdc_epoch
                    and begun.source_position = ended.__cdc_position
                    and begun.{{ key }} <> ended.__cdc_key
            group by begun.{{ key }}, begun.source_epoch, begun.source_position
        )
    {%- endset -%}
    {%- set at = namespace(links=cdc_lakehouse.scratch_rows('inherited_0', query), is_done=false) -%}
    {#- a bound, lest a build hangs: a chain of 1,024 key changes -#}
    {%- for step in range(1, 11) if not at.is_done -%}
        {%- if run_query('select 1 from ' ~ at.links ~ ' where size(__cdc_lacks) > 0 and __cdc_key is not null limit 1').rows -%}
            {%- set query -%}
                select
                    link.{{ key }}, link.source_epoch, link.source_position, further.__cdc_key,
                    greatest(link.ingest_batch, further.ingest_batch) as ingest_batch, further.__cdc_incarnation,
                    coalesce(array_intersect(link.__cdc_lacks, further.__cdc_lacks), link.__cdc_lacks) as __cdc_lacks
                    {%- for column in table['carried'] %},
                    if(
                        coalesce(array_contains(link.__cdc_lacks, '{{ column }}'), false),
                        further.`{{ column }}`, link.`{{ column }}`
                    ) as `{{ column }}`
                    {%- endfor %}
                from {{ at.links }} as link
                left join {{ at.links }} as further
                    on
                        link.__cdc_key = further.{{ key }}
                        and link.__cdc_incarnation.source_epoch = further.source_epoch
                        and link.__cdc_incarnation.source_position = further.source_position
            {%- endset -%}
            {%- set at.links = cdc_lakehouse.scratch_rows('inherited_' ~ step, query) -%}
        {%- else -%}
            {%- set at.is_done = true -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not is_kept or not run_query('select 1 from ' ~ at.links ~ ' where size(__cdc_lacks) > 0 limit 1').rows -%}
        {{ return(at.links) }}
    {%- endif -%}
    {%- set lacks = {} -%}
    {%- for column in table['carried'] -%}
        {%- do lacks.update({column: 'not exists(carried_columns, entry -> entry.place.op = \'c\' and entry.is_known'
            ~ " and entry.column_name = '" ~ column ~ "')"}) -%}
    {%- endfor -%}
    {%- set query -%}
        select
            link.{{ key }}, link.source_epoch, link.source_position, link.ingest_batch,
            coalesce(array_intersect(link.__cdc_lacks, stored.__cdc_lacks), link.__cdc_lacks) as __cdc_lacks
            {%- for column in table['carried'] %},
            if(array_contains(link.__cdc_lacks, '{{ column }}'), stored.`{{ column }}`, link.`{{ column }}`) as `{{ column }}`
            {%- endfor %}
        from {{ at.links }} as link
        left join (
            select
                {{ key }}, {{ carried }},
                {%- if is_history %}
                named_struct('source_epoch', from_epoch, 'position', from_position) as __cdc_begun,
                cast(array() as array<string>) as __cdc_lacks
            from {{ this }}
            where op = 'c'
            {%- else %}
                element_at(filter(carried_columns, entry -> entry.place.op = 'c'), 1).place as __cdc_begun,
                {{ cdc_lakehouse.columns_where(lacks) | indent(16) }} as __cdc_lacks
            from {{ this }}
            where exists(carried_columns, entry -> entry.place.op = 'c' and entry.is_known)
            {%- endif %}
        ) as stored
            on
                link.{{ key }} = stored.{{ key }}
                and link.source_epoch = stored.__cdc_begun.source_epoch
                and link.source_position = stored.__cdc_begun.position
    {%- endset -%}
    {{ return(cdc_lakehouse.scratch_rows('inherited', query)) }}
{%- endmacro %}
