{#
    All typed change events of a table up to the bound of the run. With `keys` those of the keys
    in that relation, from a temporary view that this creates and `events` names: records of other
    keys are left out before any JSON is parsed, where Kafka's key has the key's column. Spark
    analyses a view of the catalogue for each query on it, and a temporary one once. With `is_kept` a
    complete snapshot may also lack rows that are stored and of which bronze has no event.
#}
{% macro change_history(events, table, keys=none, is_kept=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set bound = cdc_lakehouse.arrived_until_this_run(table['bronze']) -%}
{%- if keys -%}
    {%- set events = [this.schema, this.identifier, events] | join('__') -%}
    {%- set of_keys -%}
        left semi join (
            select {{ key }} as wanted_key from {{ keys }} union all select null
        ) as wanted
            on {{ cdc_lakehouse.key_value(table, has_row=false) | indent(16) }} <=> wanted.wanted_key
    {%- endset -%}
    {%- set query -%}
        select typed.*
        from ({{ cdc_lakehouse.change_events(table['bronze_relation'], table, of_keys) }}) as typed
        left semi join {{ keys }} as wanted
            on typed.{{ key }} = wanted.{{ key }}
    {%- endset -%}
    {%- do cdc_lakehouse.run_statement(create_temporary_view(events, query)) -%}
{%- endif -%}
{{ cdc_lakehouse._decided_events(table, events, key ~ ' is not null and ' ~ bound) }}
{%- for point in cdc_lakehouse.complete_snapshots(table['bronze']) if execute %}
union all
{{ cdc_lakehouse._missing_rows(events, table, point, bound, is_kept) }}
{%- endfor %}
{%- endmacro %}
