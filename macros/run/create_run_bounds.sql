{#
    Fix for the whole run how far each bronze table is read, and list the truncates that no
    model has read yet, in the view `staging.run_bounds`.

    A table is looked at from where its readers are, so that the cost follows what is new.
#}
{% macro create_run_bounds() -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'test', 'retry'] -%}
        {%- set tables = [] -%}
        {%- for source in bronze_sources() if source.name != 'rejected_events' -%}
            {%- set read_to = lowest_progress(source.name) -%}
            {%- do tables.append(
                "select '" ~ source.name ~ "' as bronze_table,"
                ~ ' ' ~ read_to ~ ' as lower_bound,'
                ~ ' coalesce(max(ingest_batch), ' ~ read_to ~ ') as upper_bound,'
                ~ " array_join(collect_set(case when op = 't' and ingest_batch > " ~ read_to
                ~ " then source_lsn end), ' ') as truncates"
                ~ ' from ' ~ source.schema ~ '.' ~ source.name
                ~ " where ingest_date >= '" ~ arrived_between(read_to, read_to)[-11:]
            ) -%}
        {%- endfor -%}
        {%- set rows = [] -%}
        {%- for row in run_query(tables | join(' union all ')) -%}
            {%- do rows.append(
                "('" ~ row[0] ~ "', " ~ row[1] ~ 'L, ' ~ row[2] ~ "L, '" ~ row[3] ~ "')"
            ) -%}
        {%- endfor -%}
        {%- do run_query(
            'create or replace view ' ~ run_bounds_relation()
            ~ ' as select * from values ' ~ rows | join(', ')
            ~ ' as bounds (bronze_table, lower_bound, upper_bound, truncates)'
        ) -%}
    {%- endif -%}
{%- endmacro %}
