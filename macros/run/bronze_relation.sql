{# The relation of a bronze table, by its name. #}
{% macro bronze_relation(name) -%}
    {%- for source in cdc_lakehouse.bronze_sources() if source.name == name -%}
        {{ return(source.schema ~ '.' ~ source.name) }}
    {%- endfor -%}
{%- endmacro %}
