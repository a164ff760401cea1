{#
    Run a statement that returns no rows. dbt's `run_query` asks for rows, which fails on a
    Spark Thrift Server (PyHive 0.7, Spark 3.5) where a statement has none.
#}
{% macro run_statement(sql) -%}
    {%- call statement(auto_begin=false) -%}
        {{ sql }}
    {%- endcall -%}
{%- endmacro %}
