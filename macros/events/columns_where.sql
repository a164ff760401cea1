{# The names of the columns whose condition holds, as an array; a text that is split, since Spark runs `filter`
   and `transform` without generated code. #}
{% macro columns_where(conditions) -%}
cast({% if conditions %}array_remove(split(concat_ws('`',
    {%- for column, condition in conditions.items() %}
    if({{ condition }}, '{{ column }}', null){{ ',' if not loop.last }}
    {%- endfor %}
), '`'), ''){% else %}array(){% endif %} as array<string>)
{%- endmacro %}
