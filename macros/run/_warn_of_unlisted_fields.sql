{#
    After a run: name each field that arrived and that no model lists, a new column at the
    source. Its values are in bronze and in no silver row. `arrived` is what _arrived_tables
    found.
#}
{% macro _warn_of_unlisted_fields(arrived) -%}
    {%- set queries = [] -%}
    {%- for table in arrived -%}
        {%- set listed = table['table']['source_names'].values() | join("', '") -%}
        {%- do queries.append(
            "(select distinct '" ~ table['staging'].name ~ "' as staging, name from "
            ~ table['staging'].schema ~ '.' ~ table['staging'].alias
            ~ ' lateral view explode(fields) field as name'
            ~ " where name not like '\\_\\_%' and name not in ('" ~ listed ~ "') and "
            ~ cdc_lakehouse._arrived_between(table['lower'], table['upper'])
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
{%- endmacro %}
