{#
    Of each create in `versions` that left values out, those of the previous key's last version,
    as history_rows reads them; scratch rows. A delete and a create with one position are a key
    change. `versions` (a subquery, as of history_rows) and `stored` (one with their columns, or
    none) are where the previous key's version is. Runs statements.

    That version may lack the same value, as its own key change left it out: so each key's
    values are looked up in the ones found, and each time the links get twice as long.
#}
{% macro _inherited_values(table, versions, stored) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set query -%}
        select
            {{ key }}, source_epoch, source_position, previous.*
        from (
            select
                begun.{{ key }}, begun.source_epoch, begun.source_position,
                {#- one, if two deletes ever have one position #}
                min_by(struct(
                    ended.{{ key }} as fold_key, ended.inherited as fold_life,
                    ended.fold_lacks as fold_lacks, ended.ingest_batch,
                    ended.`{{ table['carried'] | join('`, ended.`') }}`
                ), cast(ended.{{ key }} as string)) as previous
            from (
                select distinct {{ key }}, inherited.source_epoch, inherited.source_position
                from {{ versions }}
                where fold_lacks is not null
            ) as begun
            inner join (
                select * from {{ versions }}
                {%- if stored %}
                union all
                select * from {{ stored }}
                {%- endif %}
            ) as ended
                on
                    begun.source_epoch = ended.to_epoch
                    and begun.source_position = ended.to_position
                    and begun.{{ key }} <> ended.{{ key }}
            group by begun.{{ key }}, begun.source_epoch, begun.source_position
        )
    {%- endset -%}
    {%- set at = namespace(links=cdc_lakehouse.scratch_rows('inherited_0', query), is_done=false) -%}
    {#- a bound, lest a build hangs: a chain of 1,024 key changes -#}
    {%- for step in range(1, 11) if not at.is_done -%}
        {%- if run_query('select 1 from ' ~ at.links ~ ' where size(fold_lacks) > 0 limit 1').rows -%}
            {%- set query -%}
                select
                    link.{{ key }}, link.source_epoch, link.source_position,
                    further.fold_key, further.fold_life,
                    array_intersect(link.fold_lacks, further.fold_lacks) as fold_lacks,
                    greatest(link.ingest_batch, further.ingest_batch) as ingest_batch,
                    {%- for column in table['carried'] %}
                    if(
                        coalesce(array_contains(link.fold_lacks, '{{ column }}'), false),
                        further.`{{ column }}`, link.`{{ column }}`
                    ) as `{{ column }}`{{ ',' if not loop.last }}
                    {%- endfor %}
                from {{ at.links }} as link
                left join {{ at.links }} as further
                    on
                        link.fold_key = further.{{ key }}
                        and link.fold_life.source_epoch = further.source_epoch
                        and link.fold_life.source_position = further.source_position
            {%- endset -%}
            {%- set at.links = cdc_lakehouse.scratch_rows('inherited_' ~ step, query) -%}
        {%- else -%}
            {%- set at.is_done = true -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(at.links) }}
{%- endmacro %}
