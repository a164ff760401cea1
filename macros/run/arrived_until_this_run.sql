{# True for all of a bronze table up to the bound of the run. #}
{% macro arrived_until_this_run(bronze_table) -%}
    {%- if not execute -%}{{ return('true') }}{%- endif -%}
    ingest_batch <= {{ cdc_lakehouse.run_bounds().get(bronze_table, {}).get('upper', 0) }}
{%- endmacro %}
