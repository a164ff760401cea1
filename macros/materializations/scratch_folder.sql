{# Where the files of scratch views are: below the schema staging, which holds only views. #}
{% macro scratch_folder() -%}
    {{ return(
        cdc_lakehouse.schema_folder(cdc_lakehouse.generate_schema_name('staging', none))
        ~ '/scratch'
    ) }}
{%- endmacro %}
