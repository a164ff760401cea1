{# True for what an increment of this model has to read of one input, or of any, as literals. #}
{% macro arrived_in_this_run(input_name=none) -%}
    {%- if not execute -%}{{ return('true') }}{%- endif -%}
    {%- set inputs = cdc_lakehouse.inputs_of(model) -%}
    {%- set named = inputs | selectattr('name', 'equalto', input_name) | list if input_name else inputs -%}
    {%- do exceptions.raise_compiler_error(
        "model '" ~ model.name ~ "': arrived_in_this_run('" ~ input_name ~ "') names no table that it reads;"
        ~ ' it reads ' ~ inputs | map(attribute='name') | join(', ')) if input_name and not named -%}
    {%- set lower, upper = [], {} -%}
    {%- for input in named -%}{%- do upper.update(input['upper']) -%}{%- endfor -%}
    {%- for name, batch in upper.items() -%}
        {%- set read_to = cdc_lakehouse.stored_table(this)['recorded'].get('read_to.' ~ name, 0) | int -%}
        {%- do lower.extend([read_to] if read_to < batch else []) -%}
    {%- endfor -%}
    {%- if not named or named | rejectattr('upper') | list -%}{{ return('true') }}{%- endif -%}
    {%- set is_bronze = not named | rejectattr('is_bronze') | list -%}
    {{ return(cdc_lakehouse._arrived_between(lower | min, upper.values() | max, is_bronze) if lower else 'false') }}
{%- endmacro %}
