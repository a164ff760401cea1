{#
    The positions of the truncates to apply to this model's table, oldest first: those of the
    variable `cdc_lakehouse_truncates`, and those applied before that it does not say to ignore.
#}
{% macro applied_truncates() -%}
    {%- set recorded = cdc_lakehouse.progress(this).get('truncates', '').split() -%}
    {%- set decisions = dict.fromkeys(cdc_lakehouse._positions(recorded), 'apply') -%}
    {%- do decisions.update(cdc_lakehouse.decisions('truncates')) -%}
    {{ return(decisions.items() | selectattr(1, 'equalto', 'apply') | map('first') | sort) }}
{%- endmacro %}
