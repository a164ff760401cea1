{% macro warn_of_restored_source() -%}{%- endmacro %}
