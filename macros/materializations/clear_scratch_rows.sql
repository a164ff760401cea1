{# Remove the files of all scratch rows, also a killed run's: they may hold an erased key's rows. #}
{% macro clear_scratch_rows() -%}
    {%- set folder = graph.get('cdc_lakehouse.run', {}).get('scratch') -%}
    {%- set emptied = "insert overwrite directory '%s' using parquet select 1 as nothing where false" -%}
    {%- if folder -%}{%- do cdc_lakehouse.run_statement(emptied % folder) -%}{%- endif -%}
{%- endmacro %}
