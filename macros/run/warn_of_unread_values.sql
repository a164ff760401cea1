{#
    After a run: name what arrived and is in no silver row. A field that no model lists is a
    new column at the source, whose values go nowhere. The key of an event that could not be
    typed may have a row of an older version, or none. Bronze keeps both.
#}
{% macro warn_of_unread_values() -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- set queries = [] -%}
        {%- for arrived in cdc_lakehouse.arrived_tables() -%}
            {%- set listed = arrived['table']['source_names'].values() | join("', '") -%}
            {%- do queries.append(
                "(select distinct '" ~ arrived['staging'].name ~ "' as staging, unread.*"
                ~ ' from ' ~ arrived['staging'].schema ~ '.' ~ arrived['staging'].alias
                ~ ' lateral view inline(concat('
                ~ "transform(filter(coalesce(fields, array()), field -> field not like '\\_\\_%' and field not in ('"
                ~ listed ~ "')), field -> struct('field' as what, field as name)),"
                ~ " if(rejection is null, array(), array(struct('row' as what, coalesce(cast(`"
                ~ arrived['table']['key'] ~ '` as string), left(rejection, 80)) as name)))'
                ~ ')) unread as what, name'
                ~ ' where ' ~ cdc_lakehouse.arrived_between(arrived['lower'], arrived['upper'])
                ~ ' order by what, name limit 200)'
            ) -%}
        {%- endfor -%}
        {%- set untyped = {} -%}
        {%- if queries -%}
            {%- for row in run_query(queries | join(' union all ')) -%}
                {%- if row[1] == 'row' -%}
                    {%- do untyped.setdefault(row[0], []).append(row[2]) -%}
                {%- else -%}
                    {%- do exceptions.warn(
                        "model '" ~ row[0] ~ "' does not list the field '" ~ row[2]
                        ~ "' that its events have: add a line under 'columns', then fill its past"
                        ~ ' with dbt build --full-refresh -s ' ~ row[0] ~ '+'
                    ) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endif -%}
        {%- for staging, keys in untyped.items() -%}
            {%- do exceptions.warn(
                "model '" ~ staging ~ "' could not type events of " ~ keys[:10] | join(', ')
                ~ (' and others' if keys | length > 10 else '')
                ~ ': their rows may be older than at the source, or missing; see rejected_rows'
            ) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
