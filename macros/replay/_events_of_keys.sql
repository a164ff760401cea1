{#
    A temporary view, by its name, with the typed events of some keys, and those whose Kafka key
    lacks the key's column: all others are left out before any JSON is parsed. Spark analyses a
    view of the catalogue for each query on it, and a temporary one once.
#}
{% macro _events_of_keys(name, table, keys) -%}
    {%- set view = [this.schema, this.identifier, name] | join('__') -%}
    {%- set of_keys -%}
        left semi join (
            select `{{ table['key'] }}` as wanted_key from {{ keys }} union all select null
        ) as wanted
            on {{ cdc_lakehouse.key_value(table, has_row=false) | indent(16) }} <=> wanted.wanted_key
    {%- endset -%}
    {%- do cdc_lakehouse.run_statement(create_temporary_view(
        view, cdc_lakehouse.change_events(table['bronze_relation'], table, of_keys)
    )) -%}
    {{ return(view) }}
{%- endmacro %}
