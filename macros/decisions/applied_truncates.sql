{#
    The LSNs of the truncates to apply to this model's table: those that the variable
    `cdc_lakehouse_truncates` says, and those that it has applied before, but for what the
    variable says to ignore.
#}
{% macro applied_truncates() -%}
    {%- set decisions = {} -%}
    {%- for lsn in cdc_lakehouse.recorded_decisions(this, 'truncates') -%}
        {%- do decisions.update({lsn: 'apply'}) -%}
    {%- endfor -%}
    {%- for lsn, decision in cdc_lakehouse.decisions('truncates').items() -%}
        {%- do decisions.update({lsn | int: decision}) -%}
    {%- endfor -%}
    {%- set lsns = [] -%}
    {%- for lsn, decision in decisions.items() if decision == 'apply' -%}
        {%- do lsns.append(lsn) -%}
    {%- endfor -%}
    {{ return(lsns | sort) }}
{%- endmacro %}
