{# Record progress in a table's properties (see progress), where it differs. #}
{% macro record(relation, values) -%}
    {%- set before = progress(relation) -%}
    {%- set changed = [] -%}
    {%- for name, value in values.items() if before.get(name) != value | string -%}
        {%- do changed.append("'lakehouse." ~ name ~ "' = '" ~ value ~ "'") -%}
    {%- endfor -%}
    {%- if changed -%}
        {%- do run_query(
            'alter table ' ~ relation ~ ' set tblproperties (' ~ changed | join(', ') ~ ')'
        ) -%}
    {%- endif -%}
{%- endmacro %}
