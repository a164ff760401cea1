{# Where the files of a scratch view are (see create_scratch_view). #}
{% macro scratch_folder(name) -%}
    {{ return(schema_folder(generate_schema_name('staging', none)) ~ '/' ~ name) }}
{%- endmacro %}
