{#
    Run a statement that returns no rows: dbt's `run_query` fetches rows, and over the network
    that fails where there are none (PyHive 0.7 with Spark 3.5).
#}
{% macro run_statement(sql) -%}
    {%- call statement(auto_begin=false) -%}
        {{ sql }}
    {%- endcall -%}
{%- endmacro %}
