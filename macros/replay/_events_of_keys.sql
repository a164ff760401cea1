{#
    A temporary view, by its name, with the typed events of some keys, and those whose Kafka key
    lacks the key's column: all others are left out before any JSON is parsed. Kafka's keys are
    read first, and of few events the offsets, so that Parquet's pages of all others' values are
    skipped. Spark analyses a view of the catalogue for each query on it, and a temporary one once.
#}
{% macro _events_of_keys(name, table, keys) -%}
    {%- set view = [this.schema, this.identifier, name] | join('__') -%}
    {%- set of_keys -%}
        left semi join (
            select `{{ table['key'] }}` as wanted_key from {{ keys }} union all select null
        ) as wanted
            on {{ cdc_lakehouse.key_value(table, has_row=false) | indent(16) }} <=> wanted.wanted_key
    {%- endset -%}
    {%- set offsets = run_query(
        "select if(count(*) = count(kafka_offset) and count(*) <= 1000, array_join(collect_list(kafka_offset), ', '), '')"
        ~ ' from ' ~ cdc_lakehouse.bronze_events(table['bronze_relation']) ~ ' as bronze ' ~ of_keys
    ).rows[0][0] -%}
    {%- set at_offsets = '\nand bronze.kafka_offset in (' ~ offsets ~ ')' if offsets -%}
    {%- do cdc_lakehouse.run_statement(create_temporary_view(
        view, cdc_lakehouse.change_events(table['bronze_relation'], table, of_keys ~ at_offsets)
    )) -%}
    {{ return(view) }}
{%- endmacro %}
