{# Drop one day of a bronze table for good (docs/runbook.md). #}
{% macro drop_bronze_day(table, day) -%}
    {%- do cdc_lakehouse.run_statement("alter table bronze.%s drop partition (ingest_date = '%s')" % (table, day)) -%}
    {{ log('dropped ' ~ day ~ ' of bronze.' ~ table, info=true) }}
{%- endmacro %}
