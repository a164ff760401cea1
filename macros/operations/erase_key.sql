{#
    Erase all events of a key of Kafka from bronze, its rows from the histories of the table, and
    the files that had them (docs/runbook.md).
#}
{% macro erase_key(table, key) -%}
    {%- set literal = cdc_lakehouse._literal(key) -%}
    {%- set erased = cdc_lakehouse._erase_rows('bronze.' ~ table, 'key = ' ~ literal) -%}
    {{ log('erased ' ~ erased ~ ' events of bronze.' ~ table, info=true) }}
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
                'select cast(' ~ cdc_lakehouse.key_value(declared, has_row=false)
                ~ ' as string) from (select ' ~ literal ~ ' as key)'
            ).rows[0][0] -%}
            {%- set erased = cdc_lakehouse._erase_rows(
                history, 'cast(`' ~ declared['key'] ~ '` as string) = ' ~ cdc_lakehouse._literal(value or '')
            ) -%}
            {{ log('erased ' ~ erased ~ ' versions of ' ~ history, info=true) }}
        {%- endif -%}
    {%- endfor -%}
    {%- do cdc_lakehouse.clear_scratch_rows() -%}
{%- endmacro %}
