{#
    What the variable `cdc_lakehouse_<kind>` says. The hook at the start asks first, and its
    answer is kept: a variable that a project sets below this package's name does not reach the
    project's own models.
#}
{% macro decisions(kind) -%}
    {%- set said = var('cdc_lakehouse_' ~ kind, {}) -%}
    {{ return(graph.setdefault('cdc_lakehouse.decisions', {}).setdefault(kind, said) if execute else said) }}
{%- endmacro %}
