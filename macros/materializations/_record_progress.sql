{#
    Record what this run of a silver model has read of each input, and which truncates and
    complete snapshots it has applied. A model killed before this reads the same again, which
    changes nothing.
#}
{% macro _record_progress() -%}
    {%- set progress = {} -%}
    {%- for input in cdc_lakehouse.inputs_of(model) -%}
        {%- for name, batch in input['upper'].items() -%}
            {%- do progress.update({'read_to.' ~ name: batch}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if cdc_lakehouse.applied_truncates() -%}
        {%- do progress.update({'truncates': cdc_lakehouse.applied_truncates() | join(' ')}) -%}
    {%- endif -%}
    {%- for bronze_table in cdc_lakehouse._bronze_tables_of(model) -%}
        {%- set positions = cdc_lakehouse.complete_snapshots(bronze_table) -%}
        {%- if positions -%}
            {%- do progress.update({'complete_snapshots.' ~ bronze_table: positions | join(' ')}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do cdc_lakehouse.record(this, progress) -%}
{%- endmacro %}
