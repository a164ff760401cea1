{% macro warn_of_unlisted_fields() -%}{%- endmacro %}
