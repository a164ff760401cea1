{#
    The LSNs that a table has recorded under a name (see record_progress): what was decided
    once holds for every rebuild, whether or not a variable still says it.
#}
{% macro recorded_decisions(relation, name) -%}
    {%- set lsns = [] -%}
    {%- if load_relation(relation) -%}
        {%- for lsn in cdc_lakehouse.progress(relation).get(name, '').split() -%}
            {%- do lsns.append(lsn | int) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(lsns) }}
{%- endmacro %}
