{# The LSNs of the truncates that the variable `truncates` says to apply. #}
{% macro applied_truncates() -%}
    {%- set lsns = [] -%}
    {%- for lsn, decision in var('truncates', {}).items() if decision == 'apply' -%}
        {%- do lsns.append(lsn | int) -%}
    {%- endfor -%}
    {{ return(lsns) }}
{%- endmacro %}
