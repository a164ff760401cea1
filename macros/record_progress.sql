{#
    After a silver model: record up to where it has read each of its inputs, whether or not
    that changed a row. A model killed before this reads the same again, which changes
    nothing, because the merge is guarded.
#}
{% macro record_progress() -%}
    {%- if execute -%}
        {%- set read_to = {} -%}
        {%- for input in inputs_of(model) -%}
            {%- do read_to.update({'read_to.' ~ input['name']: upper_bound(input)}) -%}
        {%- endfor -%}
        {%- for bronze_table in bronze_tables_of(model) if complete_snapshots(bronze_table) -%}
            {%- do read_to.update({
                'complete_snapshots.' ~ bronze_table: complete_snapshots(bronze_table) | join(' ')
            }) -%}
        {%- endfor -%}
        {%- do record(this, read_to) -%}
    {%- endif -%}
{%- endmacro %}
