{#
    Whether an event has a JSON number in a column; the key alone, before the row is parsed
    (`has_row`). A name with a quote before it and a colon behind it is in no string.
#}
{% macro _has_number(table, column, has_row=true) -%}
{%- set names = table['source_names'][column] | join('\\\\E|\\\\Q') -%}
concat_ws(' ', {{ 'value, ' if has_row }}key) rlike '"(\\Q{{ names }}\\E)"\\s*:\\s*[0-9]'
{%- endmacro %}
