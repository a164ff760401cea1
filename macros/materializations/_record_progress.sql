{#
    Record in the properties of this model's table (see progress) those of `values` that differ, and
    with `has_read` what this run has read of each input, and which truncates and complete snapshots
    it has applied. A model killed before this reads the same again, which changes nothing.
#}
{% macro _record_progress(values, has_read=true) -%}
    {%- if has_read -%}
        {%- for input in cdc_lakehouse.inputs_of(model) -%}
            {%- for name, batch in input['upper'].items() -%}
                {%- do values.update({'read_to.' ~ name: batch | string}) -%}
            {%- endfor -%}
        {%- endfor -%}
        {%- for name, decision in [('truncates', 'apply'), ('ignored_truncates', 'ignore')] -%}
            {%- set points = cdc_lakehouse.decided_truncates(decision) | map('join', '@') | join(' ') -%}
            {%- do values.update({name: points}) -%}
        {%- endfor -%}
        {%- for bronze_table in cdc_lakehouse._bronze_tables_of(model) -%}
            {%- set points = cdc_lakehouse.complete_snapshots(bronze_table) | map('join', '@') | join(' ') -%}
            {%- do values.update({'complete_snapshots.' ~ bronze_table: points}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set recorded = cdc_lakehouse.progress(this) -%}
    {%- set properties = [] -%}
    {%- for name, value in values.items() if recorded.get(name) != value -%}
        {%- do recorded.update({name: value}) -%}
        {%- do properties.append("'lakehouse." ~ name ~ "' = '" ~ value ~ "'") -%}
    {%- endfor -%}
    {%- if properties -%}
        {%- do cdc_lakehouse.run_statement(
            'alter table ' ~ this ~ ' set tblproperties (' ~ properties | join(', ') ~ ')'
        ) -%}
    {%- endif -%}
{%- endmacro %}
