{# Whether a model (of the graph) keeps the history of rows, and not the current ones. #}
{% macro is_history(node) -%}
    {{ return(node.config.materialized == 'cdc_history' or node.config.get('scd_type') == 2) }}
{%- endmacro %}
