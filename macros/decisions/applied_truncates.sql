{#
    The positions of the truncates to apply to this model's table: those of the variable
    `cdc_lakehouse_truncates`, and those applied before that it does not say to ignore.
#}
{% macro applied_truncates() -%}
    {%- set decisions = {} -%}
    {%- for position in cdc_lakehouse.progress(this).get('truncates', '').split() -%}
        {%- do decisions.update({cdc_lakehouse._position_text(position): 'apply'}) -%}
    {%- endfor -%}
    {%- for named, decision in cdc_lakehouse.decisions('truncates').items() -%}
        {%- do decisions.update({cdc_lakehouse._position_text(named): decision}) -%}
    {%- endfor -%}
    {%- set positions = [] -%}
    {%- for position, decision in decisions.items() if decision == 'apply' -%}
        {%- do positions.append(position) -%}
    {%- endfor -%}
    {{ return(positions | sort) }}
{%- endmacro %}
