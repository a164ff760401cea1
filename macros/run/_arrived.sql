{#
    True for what an increment of this model has to read of some of its inputs: all of them,
    where it cannot be told for one what is new.
#}
{% macro _arrived(inputs) -%}
    {%- set recorded = cdc_lakehouse.progress(this) -%}
    {%- set lower = [] -%}
    {%- set upper = [] -%}
    {%- for input in inputs -%}
        {%- if not input['upper'] -%}{{ return('true') }}{%- endif -%}
        {%- for name, batch in input['upper'].items() -%}
            {%- set read_to = recorded.get('read_to.' ~ name, 0) | int -%}
            {%- do upper.append(batch) -%}
            {%- if read_to < batch -%}{%- do lower.append(read_to) -%}{%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if not lower -%}{{ return('false' if inputs else 'true') }}{%- endif -%}
    {%- set is_bronze = inputs | rejectattr('is_bronze') | list == [] -%}
    {{ return(cdc_lakehouse._arrived_between(lower | min, upper | max, is_bronze=is_bronze)) }}
{%- endmacro %}
