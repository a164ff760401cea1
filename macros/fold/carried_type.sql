{#
    A value of the type of `carried_columns`: one entry for each column that the newest event
    left out, with the place that its value comes from, or from which on it is unknown.
#}
{% macro carried_type(value='null') -%}
cast(
    {{ value }} as array<struct<
        column_name: string, is_known: boolean, place: {{ cdc_lakehouse._place_type() | indent(8) }}
    >>
)
{%- endmacro %}
