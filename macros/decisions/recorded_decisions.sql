{#
    The positions that a table has recorded under a name (see record_progress): what was decided
    once holds for every rebuild, whether or not a variable still says it.
#}
{% macro recorded_decisions(relation, name) -%}
    {%- set positions = [] -%}
    {%- if load_relation(relation) -%}
        {%- for position in cdc_lakehouse.progress(relation).get(name, '').split() -%}
            {%- do positions.append(cdc_lakehouse.position_text(position)) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(positions) }}
{%- endmacro %}
