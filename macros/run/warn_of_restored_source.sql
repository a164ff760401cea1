{#
    After a run: warn where new events of a table arrived and every one of them lost. A source
    that was restored starts its log again, below those that are stored; its topic then needs
    a higher epoch. Events delivered once more lose too, and are not meant.
#}
{% macro warn_of_restored_source() -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- for arrived in cdc_lakehouse.arrived_tables() -%}
            {%- set silver = arrived['silver'].schema ~ '.' ~ arrived['silver'].alias -%}
            {%- set newest = run_query(
                'select coalesce(max(ingest_batch), 0), coalesce(max(kafka_offset), -1) from '
                ~ silver
            ).rows[0] -%}
            {%- if newest[0] <= arrived['lower'] -%}
                {%- set key = '`' ~ arrived['table']['key'] ~ '`' -%}
                {%- set events = arrived['staging'].schema ~ '.' ~ arrived['staging'].alias -%}
                {%- set unseen = run_query(
                    'select count(*) from ' ~ events ~ ' as arrived left anti join ' ~ events
                    ~ ' as before on arrived.' ~ key ~ ' = before.' ~ key
                    ~ ' and arrived.source_position = before.source_position'
                    ~ ' and arrived.source_epoch = before.source_epoch'
                    ~ ' and before.ingest_batch <= ' ~ arrived['lower']
                    ~ ' where arrived.rejection is null and arrived.kafka_offset > ' ~ newest[1]
                    ~ ' and ' ~ cdc_lakehouse.arrived_between(arrived['lower'], arrived['upper'])
                      | replace('ingest_', 'arrived.ingest_')
                ).rows[0][0] -%}
                {%- if unseen -%}
                    {%- do exceptions.warn(
                        unseen ~ ' new events of bronze.' ~ arrived['bronze']
                        ~ ' arrived at higher offsets, and all of them are older than the rows'
                        ~ ' of ' ~ silver ~ '. If the source was restored, raise the epoch of'
                        ~ ' its topic in ingest/topics.toml (docs/runbook.md)'
                    ) -%}
                {%- endif -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
