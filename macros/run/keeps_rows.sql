{# Whether a model's table stays: it is there, and this is no full refresh. #}
{% macro keeps_rows() -%}
    {{ return(execute and load_relation(this) is not none and not should_full_refresh()) }}
{%- endmacro %}
