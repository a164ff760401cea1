{#
    After a silver model: record up to where it has read each of its inputs, whether or not
    that changed a row, and which truncates and complete snapshots it has taken in. A model
    killed before this reads the same again, which changes nothing, because the
    fold is the same whatever it has seen.
#}
{% macro record_progress() -%}
    {%- if execute -%}
        {%- set values = {} -%}
        {%- set read_from = {} -%}
        {%- for input in cdc_lakehouse.inputs_of(model) -%}
            {%- for name, batch in cdc_lakehouse._upper_bounds(input).items() -%}
                {%- set recorded = cdc_lakehouse.progress(this).get('read_to.' ~ name, 0) | int -%}
                {%- do read_from.update({name: recorded}) -%}
                {%- do values.update({'read_to.' ~ name: batch}) -%}
            {%- endfor -%}
        {%- endfor -%}
        {#- for what comes after the run (see _arrived_tables) -#}
        {%- do graph.setdefault('cdc_lakehouse.read_from', {}).update({model.unique_id: read_from}) -%}
        {%- if cdc_lakehouse.applied_truncates() -%}
            {%- do values.update({'truncates': cdc_lakehouse.applied_truncates() | join(' ')}) -%}
        {%- endif -%}
        {%- for bronze_table in cdc_lakehouse._bronze_tables_of(model) -%}
            {%- set positions = cdc_lakehouse.complete_snapshots(bronze_table, this) -%}
            {%- if positions -%}
                {%- do values.update(
                    {'complete_snapshots.' ~ bronze_table: positions | join(' ')}
                ) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- do cdc_lakehouse.record(this, values) -%}
    {%- endif -%}
{%- endmacro %}
