{# Remove the files of all scratch rows, also a killed run's: they may hold an erased key's rows. #}
{% macro clear_scratch_rows() -%}
    {%- do cdc_lakehouse.scratch_rows(none, 'select 1 as nothing where false') -%}
{%- endmacro %}
