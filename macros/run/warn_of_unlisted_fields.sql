{#
    After a run: name each field that arrived and that no model lists, a new column at the
    source. Its values are in bronze and in no silver row.
#}
{% macro warn_of_unlisted_fields() -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- set queries = [] -%}
        {%- for arrived in cdc_lakehouse.arrived_tables() -%}
            {%- set listed = arrived['table']['source_names'].values() | join("', '") -%}
            {%- do queries.append(
                "(select distinct '" ~ arrived['staging'].name ~ "' as staging, name from "
                ~ arrived['staging'].schema ~ '.' ~ arrived['staging'].alias
                ~ ' lateral view explode(fields) field as name'
                ~ " where name not like '\\_\\_%' and name not in ('" ~ listed ~ "') and "
                ~ cdc_lakehouse.arrived_between(arrived['lower'], arrived['upper'])
                ~ ' order by name limit 200)'
            ) -%}
        {%- endfor -%}
        {%- if queries -%}
            {%- for row in run_query(queries | join(' union all ')) -%}
                {%- do exceptions.warn(
                    "model '" ~ row[0] ~ "' does not list the field '" ~ row[1]
                    ~ "' that its events have: add a line under 'columns', then fill its past"
                    ~ ' with dbt build --full-refresh -s ' ~ row[0] ~ '+'
                ) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
