{#
    True for a silver row of which no event has brought a column's value yet: the row says
    nothing about it.
#}
{% macro is_unknown(column, carried_columns='carried_columns') -%}
exists(
    {{ cdc_lakehouse.carried_type(carried_columns) }},
    carried -> carried.column_name = '{{ column }}' and not carried.is_known
)
{%- endmacro %}
