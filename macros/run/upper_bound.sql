{#
    Up to which `ingest_batch` an input (see inputs_of) can be read: the run's bound of a
    bronze table; of a silver table what it has read itself.
#}
{% macro upper_bound(input) -%}
    {%- if input.get('relation') is none -%}
        {{ return(cdc_lakehouse.run_bounds().get(input['name'], {}).get('upper', 0)) }}
    {%- endif -%}
    {%- set batches = [0] -%}
    {%- for name, value in cdc_lakehouse.progress(input['relation']).items()
        if name.startswith('read_to.') -%}
        {%- do batches.append(value | int) -%}
    {%- endfor -%}
    {{ return(batches | max) }}
{%- endmacro %}
