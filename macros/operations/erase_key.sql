{#
    Erase all events of a key of Kafka from bronze, its rows from the histories of the table, and
    the files that had them (docs/runbook.md).
#}
{% macro erase_key(table, key) -%}
    {%- set literal = "'" ~ key | replace('\\', '\\\\') | replace("'", "\\'") ~ "'" -%}
    {%- set erased = [('bronze.' ~ table, 'key = ' ~ literal, 'events')] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model'
        and node.config.materialized == 'cdc_history'
        and table in cdc_lakehouse._bronze_tables_of(node) -%}
        {%- set history = api.Relation.create(schema=node.schema, identifier=node.alias) -%}
        {%- if load_relation(history) -%}
            {%- set staging = graph.nodes[node.depends_on.nodes[0]] -%}
            {%- set declared = cdc_lakehouse.change_table(
                api.Relation.create(schema=staging.schema, identifier=staging.alias)
            ) -%}
            {%- set value = run_query(
                'select hex(cast(' ~ cdc_lakehouse.key_value(declared, has_row=false)
                ~ ' as string)) from (select ' ~ literal ~ ' as key)'
            ).rows[0][0] -%}
            {#- '' is a key; null means that Kafka's key has none -#}
            {%- set of_key = 'false' if value is none
                else 'hex(cast(`' ~ declared['key'] ~ "` as string)) = '" ~ value ~ "'" -%}
            {%- do erased.append((history, of_key, 'versions')) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for relation, condition, rows in erased -%}
        {%- set found = run_query('select count(*) from ' ~ relation ~ ' where ' ~ condition).rows[0][0] -%}
        {%- if found -%}
            {%- do cdc_lakehouse.run_statement('delete from ' ~ relation ~ ' where ' ~ condition) -%}
            {%- do cdc_lakehouse.remove_versions(relation | string) -%}
        {%- endif -%}
        {{ log('erased ' ~ found ~ ' ' ~ rows ~ ' of ' ~ relation, info=true) }}
    {%- endfor -%}
    {%- do cdc_lakehouse.clear_scratch_rows() -%}
{%- endmacro %}
