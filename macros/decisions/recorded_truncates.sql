{#
    What the table of a model was built with: `apply` or `ignore` by the point (see _points) of each
    truncate that it has read. A version before named those that it applied, in no epoch: each is the
    truncate at that position which bronze has, and what else had been read was ignored.
#}
{% macro recorded_truncates(node) -%}
    {%- set recorded = cdc_lakehouse.progress(node) -%}
    {%- set found = {} -%}
    {%- for decision, name in [('apply', 'truncates'), ('ignore', 'ignored_truncates')] -%}
        {%- do found.update(dict.fromkeys(cdc_lakehouse._points(recorded.get(name, '').split()), decision)) -%}
    {%- endfor -%}
    {%- for bronze_table in cdc_lakehouse._bronze_tables_of(node) -%}
        {%- set read_to = recorded.get('read_to.' ~ bronze_table, -1) | int -%}
        {%- set truncates = cdc_lakehouse.run_bounds().get(bronze_table, {}).get('truncates', {}) -%}
        {%- for point, batch in truncates.items() if batch <= read_to and point not in found -%}
            {%- do found.update({point: found.get((none, point[1]), 'ignore')}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(dict(found.items() | rejectattr('0.0', 'none'))) }}
{%- endmacro %}
