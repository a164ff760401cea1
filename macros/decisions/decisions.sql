{#
    What the variable `cdc_lakehouse_<kind>` says. The hooks at the start of a run ask first, and
    their answer is kept: a variable that a project sets below this package's name reaches the
    package's hooks, and not the project's own models.
#}
{% macro decisions(kind) -%}
    {%- set said = var('cdc_lakehouse_' ~ kind, {}) -%}
    {{ return(graph.setdefault('cdc_lakehouse.decisions', {}).setdefault(kind, said) if execute else said) }}
{%- endmacro %}
