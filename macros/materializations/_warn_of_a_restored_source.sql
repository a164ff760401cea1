{#
    Warn where every event of an increment lost: redelivered ones do, and those of a restored source,
    whose log starts again below what is stored. No event but the increment's (`arrived`) is parsed.
#}
{% macro _warn_of_a_restored_source(table, arrived) -%}
    {%- set query -%}
        select count(*) from (
            select 1 from {{ cdc_lakehouse.bronze_events(table['bronze_relation']) | indent(12) }} as seen
            left semi join (
                select source_position, source_epoch from {{ table['events'] }}
                where `{{ table['key'] }}` is not null and {{ arrived }}
            ) as lost
                on seen.source_epoch = lost.source_epoch and seen.source_position <=> lost.source_position
            where {{ cdc_lakehouse.arrived_until_this_run(table['bronze']) }}
            group by key, source_position, source_epoch
            having every({{ arrived }})
                and max(kafka_offset) > (select coalesce(max(kafka_offset), -1) from {{ this }})
        )
    {%- endset -%}
    {%- set unseen = run_query(query).rows[0][0] -%}
    {%- if unseen -%}
        {%- do exceptions.warn(
            unseen ~ ' new events of bronze.' ~ table['bronze']
            ~ ' arrived at higher offsets, and all of them are older than the rows'
            ~ ' of ' ~ this ~ '. If the source was restored, raise the epoch of'
            ~ ' its topic in topics.toml (docs/runbook.md)'
        ) -%}
    {%- endif -%}
{%- endmacro %}
