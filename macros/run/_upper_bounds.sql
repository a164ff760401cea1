{#
    Up to which `ingest_batch` an input (see inputs_of) can be read, by name: of a bronze table
    the run's bound, of a silver table what it has read of each of its own inputs. Not one
    number: an ingest commits a batch table by table, and a run may see it in one and not yet in
    another.
#}
{% macro _upper_bounds(input) -%}
    {%- if input.get('relation') is none -%}
        {{ return({input['name']: cdc_lakehouse.run_bounds().get(input['name'], {}).get('upper', 0)}) }}
    {%- endif -%}
    {%- set bounds = {} -%}
    {%- for name, value in cdc_lakehouse.progress(input['relation']).items() if name[:8] == 'read_to.' -%}
        {%- do bounds.update({input['name'] ~ name[7:]: value | int}) -%}
    {%- endfor -%}
    {{ return(bounds) }}
{%- endmacro %}
