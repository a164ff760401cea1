{# Compute a query once, and name its rows for the statements that follow (see scratch_view). #}
{% macro create_scratch_view(name, query) -%}
    {%- do run_query(scratch_view(name, query)) -%}
{%- endmacro %}
