{#
    True where this silver model has read all of its inputs up to the bounds of the run: then
    it runs no query and makes no commit.
#}
{% macro nothing_arrived() -%}
    {%- if not execute or not cdc_lakehouse.reads_increment() -%}{{ return(false) }}{%- endif -%}
    {%- set recorded = cdc_lakehouse.progress(this) -%}
    {%- for input in cdc_lakehouse.inputs_of(model) -%}
        {%- if recorded.get('read_to.' ~ input['name'], 0) | int < cdc_lakehouse.upper_bound(input) -%}
            {{ return(false) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(true) }}
{%- endmacro %}
