{#
    The statement that writes rows to a table in one commit: all of them, or as an upsert by the
    table's key (see _table_properties). By position, so in the table's own order of columns.

    An upsert replaces whole rows. What they do not bring is the stored row's: the columns that
    `__cdc_kept` names (where `kept`), and those that the model no longer has.
#}
{% macro _insert_statement(target, rows, types, record_key, overwrite=true, kept=false) -%}
{%- set key = config.get('unique_key') -%}
{%- set stored_types = cdc_lakehouse.stored_columns(target) -%}
{%- set dropped = stored_types.keys() | reject('in', types) | list -%}
insert {{ 'overwrite table' if overwrite else 'into' }} {{ target }}
select
{%- if record_key == '_hoodie_key' %}
    if(replace(incoming.`{{ key }}`, '-') = '', concat(incoming.`{{ key }}`, '-'), incoming.`{{ key }}`) as _hoodie_key,
{%- endif %}
{%- for column in stored_types %}
    {% if column in dropped -%}
        {{ 'null' if overwrite else 'stored.`' ~ column ~ '`' }}
    {%- elif kept and column != key and column not in cdc_lakehouse.position_columns() + ['carried_columns', 'cdc_state'] -%}
        if(array_contains(incoming.__cdc_kept, '{{ column }}'), stored.`{{ column }}`, incoming.`{{ column }}`)
    {%- else -%}
        incoming.`{{ column }}`
    {%- endif %} as `{{ column }}`
    {{- ',' if not loop.last }}
{%- endfor %}
from {{ rows }} as incoming
{%- if not overwrite and (kept or dropped) %}
left join {{ target }} as stored
    on incoming.`{{ key }}` = stored.`{{ key }}`
{%- endif %}
{%- endmacro %}
