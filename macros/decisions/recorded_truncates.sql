{#
    What the table of a model was built with: `apply` or `ignore` by the point (see _points) of each
    truncate that it has read.
#}
{% macro recorded_truncates(node) -%}
    {%- set recorded = cdc_lakehouse.progress(node) -%}
    {%- set found = {} -%}
    {%- for decision, name in [('apply', 'truncates'), ('ignore', 'ignored_truncates')] -%}
        {%- do found.update(dict.fromkeys(cdc_lakehouse._points(recorded.get(name, '').split()), decision)) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}
