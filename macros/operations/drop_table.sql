{# Drop a silver or gold table; the next build creates it again (docs/runbook.md). #}
{% macro drop_table(table) -%}
    {%- do cdc_lakehouse.run_statement('drop table if exists ' ~ table ~ ' purge') -%}
    {{ log('dropped ' ~ table, info=true) }}
{%- endmacro %}
