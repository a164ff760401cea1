{# The view that holds the bounds of the run (see run_bound). #}
{% macro run_bounds_relation() -%}
    {{ return(api.Relation.create(
        schema=generate_schema_name('staging', none), identifier='run_bounds', type='view'
    )) }}
{%- endmacro %}
