{#
    True for what an increment of this model has to read of one input: what arrived after the
    last run, up to the bound of this one, as literals, so that bronze is pruned. Arrival and
    not the position: transactions arrive in commit order, so that a later event may carry a
    lower position. True for all of an input that does not tell what is new (see inputs_of).
#}
{% macro arrived_in_this_run(input_name) -%}
    {%- if not execute -%}{{ return('true') }}{%- endif -%}
    {%- set inputs = cdc_lakehouse.inputs_of(model) -%}
    {%- set named = inputs | selectattr('name', 'equalto', input_name) | list -%}
    {%- if not named -%}
        {{ exceptions.raise_compiler_error(
            "model '" ~ model.name ~ "': arrived_in_this_run('" ~ input_name ~ "') names no table that it"
            ~ ' reads; it reads ' ~ inputs | map(attribute='name') | join(', ')
        ) }}
    {%- endif -%}
    {{ return(cdc_lakehouse._arrived(named)) }}
{%- endmacro %}
