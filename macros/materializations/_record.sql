{# Record those of `values` that differ in the properties of this model's table (see stored_table). #}
{% macro _record(values) -%}
    {%- set recorded = cdc_lakehouse.stored_table(this)['recorded'] -%}
    {%- set changed = values.items() | reject('in', recorded.items()) | list -%}
    {%- do recorded.update(changed) -%}
    {%- if changed -%}
        {%- do cdc_lakehouse.run_statement('alter table ' ~ this ~ " set tblproperties ('lakehouse."
            ~ changed | map('join', "' = '") | join("', 'lakehouse.") ~ "')") -%}
    {%- endif -%}
{%- endmacro %}
