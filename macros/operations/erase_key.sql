{# Erase all events of a key of Kafka from bronze, and the files that had them (docs/runbook.md). #}
{% macro erase_key(table, key) -%}
    {%- set literal = "'" ~ key | replace('\\', '\\\\') | replace("'", "\\'") ~ "'" -%}
    {%- set found = run_query(
        'select count(*) from bronze.' ~ table ~ ' where key = ' ~ literal
    ).rows[0][0] -%}
    {%- if found -%}
        {%- do cdc_lakehouse.run_statement('delete from bronze.' ~ table ~ ' where key = ' ~ literal) -%}
        {%- do cdc_lakehouse.remove_versions('bronze.' ~ table) -%}
    {%- endif -%}
    {%- do cdc_lakehouse.clear_scratch_rows() -%}
    {{ log('erased ' ~ found ~ ' events of bronze.' ~ table, info=true) }}
{%- endmacro %}
