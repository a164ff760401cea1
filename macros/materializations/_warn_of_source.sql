{#
    Warn of the fields (`unlisted`) that no column holds, whose values are in bronze and in no
    silver row; and, where every event of an increment lost (`lost` selects them), of a restored
    source, whose log starts again below what is stored: its topic needs a higher epoch.
    Redelivered events lose too, and are not meant; no event but the increment's is parsed.
#}
{% macro _warn_of_source(table, unlisted, lost) -%}
    {%- for field in unlisted | sort -%}
        {%- do exceptions.warn(
            "model '" ~ table['name'] ~ "' does not list the field '" ~ field
            ~ "' that its events have: add a line under 'columns', then fill its past"
            ~ ' with dbt build --full-refresh -s ' ~ table['name'] ~ '+'
        ) -%}
    {%- endfor -%}
    {%- if lost -%}
        {%- set query -%}
            select count(*) from (
                select 1 from {{ cdc_lakehouse.bronze_events(table['bronze_relation']) | indent(16) }} as seen
                left semi join (
                    select source_position, source_epoch from {{ table['events'] }}
                    where `{{ table['key'] }}` is not null and {{ lost }}
                ) as arrived
                    on seen.source_epoch = arrived.source_epoch
                        and seen.source_position <=> arrived.source_position
                where {{ cdc_lakehouse.arrived_until_this_run(table['bronze']) }}
                group by key, source_position, source_epoch
                having every({{ lost }})
                    and max(kafka_offset) > (select coalesce(max(kafka_offset), -1) from {{ this }})
            )
        {%- endset -%}
        {%- set unseen = run_query(query).rows[0][0] -%}
        {%- if unseen -%}
            {%- do exceptions.warn(
                unseen ~ ' new events of bronze.' ~ table['bronze']
                ~ ' arrived at higher offsets, and all of them are older than the rows'
                ~ ' of ' ~ this ~ '. If the source was restored, raise the epoch of'
                ~ ' its topic in ingest/topics.toml (docs/runbook.md)'
            ) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
