{# The columns that a table has, by name, with their types; asked once a run. #}
{% macro stored_columns(relation) -%}
    {%- set memory = cdc_lakehouse.run_memory('columns') -%}
    {%- if relation | string not in memory -%}
        {%- set types = {} -%}
        {%- for column in adapter.get_columns_in_relation(relation) -%}
            {%- do types.update({column.name: column.dtype}) -%}
        {%- endfor -%}
        {%- do memory.update({relation | string: types}) -%}
    {%- endif -%}
    {{ return(memory[relation | string]) }}
{%- endmacro %}
