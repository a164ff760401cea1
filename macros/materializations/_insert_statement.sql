{# The statement that writes rows to a table in one commit: all of them, or as an upsert by the table's key (see
   table_properties). #}
{% macro _insert_statement(target, rows, types, overwrite=true, kept=false) -%}
{%- set key, stored = config.get('unique_key'), cdc_lakehouse.stored_table(target)['columns'] -%}
{%- set dropped = stored.keys() | reject('in', types) | reject('equalto', '_hoodie_key') | list -%}
{%- set never_kept = [key, 'carried_columns', 'cdc_state'] + cdc_lakehouse.position_columns() -%}
insert {{ 'overwrite table' if overwrite else 'into' }} {{ target }}
select
{%- for column in stored %}
    {% if column == '_hoodie_key' -%}
        if(replace(incoming.`{{ key }}`, '-') = '', concat(incoming.`{{ key }}`, '-'), incoming.`{{ key }}`)
    {%- elif column in dropped -%}
        {{ 'null' if overwrite else 'stored.`' ~ column ~ '`' }}
    {%- elif kept and column not in never_kept -%}
        if(array_contains(incoming.__cdc_kept, '{{ column }}'), stored.`{{ column }}`, incoming.`{{ column }}`)
    {%- else -%}
        incoming.`{{ column }}`
    {%- endif %} as `{{ column }}`
    {{- ',' if not loop.last }}
{%- endfor %}
from {{ rows }} as incoming
{%- if not overwrite and (kept or dropped) %}
left outer join {{ target }} as stored
    on incoming.`{{ key }}` = stored.`{{ key }}`
{%- endif %}
{%- endmacro %}
