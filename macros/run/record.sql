{# Record progress in a table's properties (see progress), where it differs. #}
{% macro record(relation, values) -%}
    {%- set before = cdc_lakehouse.progress(relation) -%}
    {%- set changed = {} -%}
    {%- set properties = [] -%}
    {%- for name, value in values.items() if before.get(name) != value | string -%}
        {%- do changed.update({name: value | string}) -%}
        {%- do properties.append("'lakehouse." ~ name ~ "' = '" ~ value ~ "'") -%}
    {%- endfor -%}
    {%- if properties -%}
        {%- do cdc_lakehouse.run_statement(
            'alter table ' ~ relation ~ ' set tblproperties (' ~ properties | join(', ') ~ ')'
        ) -%}
        {%- do before.update(changed) -%}
    {%- endif -%}
{%- endmacro %}
