{#
    After a run: warn where new events of a table arrived and every one of them lost. A source
    that was restored starts its log again, below those that are stored; its topic then needs
    a higher epoch. Events delivered once more lose too, and are not meant. `arrived` is what
    _arrived_tables found.
#}
{% macro _warn_of_restored_source(arrived) -%}
    {%- for table in arrived if table['is_unchanged'] -%}
        {%- set silver = table['silver'].schema ~ '.' ~ table['silver'].alias -%}
        {%- set events = table['staging'].schema ~ '.' ~ table['staging'].alias -%}
        {%- set key = '`' ~ table['table']['key'] ~ '`' -%}
        {%- set unseen = run_query(
            'select count(*) from ' ~ events ~ ' as arrived left anti join ' ~ events
            ~ ' as before on arrived.' ~ key ~ ' = before.' ~ key
            ~ ' and arrived.source_position = before.source_position'
            ~ ' and arrived.source_epoch = before.source_epoch'
            ~ ' and before.ingest_batch <= ' ~ table['lower']
            ~ ' where arrived.' ~ key ~ ' is not null and arrived.kafka_offset >'
            ~ ' (select coalesce(max(kafka_offset), -1) from ' ~ silver ~ ')'
            ~ ' and ' ~ cdc_lakehouse._arrived_between(table['lower'], table['upper'])
              | replace('ingest_', 'arrived.ingest_')
        ).rows[0][0] -%}
        {%- if unseen -%}
            {%- do exceptions.warn(
                unseen ~ ' new events of bronze.' ~ table['bronze']
                ~ ' arrived at higher offsets, and all of them are older than the rows'
                ~ ' of ' ~ silver ~ '. If the source was restored, raise the epoch of'
                ~ ' its topic in ingest/topics.toml (docs/runbook.md)'
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
