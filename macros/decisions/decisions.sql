{#
    What the variable `cdc_lakehouse_<kind>` says. The hooks at the start of a run ask first, and
    their answer is kept: a variable that a project sets below this package's name reaches the
    package's hooks, and not the project's own models.
#}
{% macro decisions(kind) -%}
    {%- set memory = cdc_lakehouse.run_memory('decisions') -%}
    {%- if execute and kind not in memory -%}
        {%- do memory.update({kind: var('cdc_lakehouse_' ~ kind, {})}) -%}
    {%- endif -%}
    {{ return(memory.get(kind, {})) }}
{%- endmacro %}
