{#
    Before a run: bronze is known to the catalogue, the bounds are fixed for all models, and
    what needs a decision has one.
#}
{% macro start_run() -%}
    {%- if execute -%}
        {%- set is_build = flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- if is_build -%}{%- do cdc_lakehouse.stop_at_unlisted_model() -%}{%- endif -%}
        {%- do cdc_lakehouse._register_bronze() -%}
        {%- do cdc_lakehouse.run_bounds() -%}
        {%- if is_build -%}
            {%- do cdc_lakehouse.stop_at_truncate() -%}
            {%- do cdc_lakehouse.check_complete_snapshots() -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
