{#
    After a run: name the fields of the events that arrived which no model lists. The source
    has a new column, and its values go nowhere (bronze keeps them).
#}
{% macro warn_of_unlisted_fields() -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- set queries = [] -%}
        {%- for arrived in cdc_lakehouse.arrived_tables() -%}
            {%- do queries.append(
                "select distinct '" ~ arrived['staging'].name ~ "' as staging, field"
                ~ ' from (select explode(fields) as field from '
                ~ arrived['staging'].schema ~ '.' ~ arrived['staging'].alias
                ~ ' where ' ~ cdc_lakehouse.arrived_between(arrived['lower'], arrived['upper']) ~ ')'
                ~ " where field not like '\\_\\_%' and field not in ('"
                ~ arrived['table']['source_names'].values() | join("', '") ~ "')"
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
