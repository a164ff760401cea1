{#
    Up to which `ingest_batch` an input (see inputs_of) can be read, by name: of a bronze table
    the run's bound; of a silver table what it has read itself of each of its own inputs. One
    number for all of them would not do: an ingest commits a batch table by table, so that a
    run may see the batch in one of them and not yet in another.
#}
{% macro _upper_bounds(input) -%}
    {%- if input.get('relation') is none -%}
        {{ return({input['name']: cdc_lakehouse.run_bounds().get(input['name'], {}).get('upper', 0)}) }}
    {%- endif -%}
    {%- set bounds = {} -%}
    {%- for name, value in cdc_lakehouse.progress(input['relation']).items()
        if name.startswith('read_to.') -%}
        {%- do bounds.update({input['name'] ~ name[7:]: value | int}) -%}
    {%- endfor -%}
    {{ return(bounds) }}
{%- endmacro %}
