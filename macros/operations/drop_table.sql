{# Drop a silver or gold table, so that the next build makes it anew (docs/runbook.md). #}
{% macro drop_table(table) -%}
    {%- do cdc_lakehouse.run_statement('drop table if exists ' ~ table ~ ' purge') -%}
    {{ log('dropped ' ~ table, info=true) }}
{%- endmacro %}
