{# The names of the columns whose condition holds, as an array. #}
{% macro columns_where(conditions) -%}
cast({% if conditions %}array_remove(split(concat_ws('`',
    {%- for column, condition in conditions.items() %}
    if({{ condition }}, '{{ column }}', null){{ ',' if not loop.last }}
    {%- endfor %}
), '`'), ''){% else %}array(){% endif %} as array<string>)
{%- endmacro %}
