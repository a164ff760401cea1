{# Run a statement that returns no rows: to fetch them fails over the network (PyHive 0.7 with Spark 3.5). #}
{% macro run_statement(sql) -%}
    {%- call statement(auto_begin=false) -%}{{ sql }}{%- endcall -%}
{%- endmacro %}
