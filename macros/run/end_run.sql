{# After a run: no scratch rows are left, and what its events show of the source is said. #}
{% macro end_run() -%}
    {%- if execute -%}
        {%- if graph.setdefault('cdc_lakehouse.scratch', {}) -%}{%- do cdc_lakehouse.clear_scratch_rows() -%}{%- endif -%}
        {%- if flags.WHICH in ['build', 'run', 'retry'] -%}
            {%- set arrived = cdc_lakehouse._arrived_tables() -%}
            {%- do cdc_lakehouse._warn_of_unlisted_fields(arrived) -%}
            {%- do cdc_lakehouse._warn_of_restored_source(arrived) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
