{#
    True for what an increment of this model has to read of one input: what arrived after the
    last run, up to the bound of this one, as literals, so that bronze is pruned. Arrival and
    not the position: transactions arrive in commit order, so that a later event may carry a
    lower position.
#}
{% macro arrived_in_this_run(input_name) -%}
    {%- if not execute -%}{{ return('true') }}{%- endif -%}
    {%- set recorded = cdc_lakehouse.progress(this) -%}
    {%- for input in cdc_lakehouse.inputs_of(model) if input['name'] == input_name -%}
        {%- set lower = [] -%}
        {%- for name, batch in input['upper'].items() -%}
            {#- a table of an earlier version has one number for an input -#}
            {%- set read_to = recorded.get(
                'read_to.' ~ name, recorded.get('read_to.' ~ input_name, 0)
            ) | int -%}
            {%- if read_to < batch -%}{%- do lower.append(read_to) -%}{%- endif -%}
        {%- endfor -%}
        {%- if lower -%}
            {{ return(cdc_lakehouse._arrived_between(
                lower | min, input['upper'].values() | max, is_bronze='relation' not in input
            )) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return('false') }}
{%- endmacro %}
