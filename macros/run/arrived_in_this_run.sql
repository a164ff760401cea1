{#
    True for what an increment of this model has to read of one input: what arrived after
    the last run, up to the bound of this one, as literals, so that bronze is pruned.

    Arrival and not the position: transactions arrive in commit order, so that a later event may
    carry a lower position than one that was read before.
#}
{% macro arrived_in_this_run(input_name) -%}
    {%- if not execute -%}{{ return('true') }}{%- endif -%}
    {%- set bounds = namespace(low=0, high=0) -%}
    {%- set bounds.low = cdc_lakehouse.progress(this).get('read_to.' ~ input_name, 0) | int -%}
    {%- for input in cdc_lakehouse.inputs_of(model) if input['name'] == input_name -%}
        {%- set bounds.high = cdc_lakehouse.upper_bound(input) -%}
        {%- if bounds.low >= bounds.high -%}{{ return('false') }}{%- endif -%}
        {%- if input.get('relation') is none -%}
            {{ return(cdc_lakehouse.arrived_between(bounds.low, bounds.high)) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return('ingest_batch > ' ~ bounds.low ~ ' and ingest_batch <= ' ~ bounds.high) }}
{%- endmacro %}
