{# The statement that writes rows to a table in one commit: all of them, an upsert, or a merge that also removes some. #}
{% macro _insert_statement(target, rows, types, overwrite=true, kept=false, has_surplus=false) -%}
{%- set key, stored = config.get('unique_key'), cdc_lakehouse.stored_table(target)['columns'] -%}
{%- set dropped = stored.keys() | reject('in', types) | reject('equalto', '_hoodie_key') | list -%}
{%- set never_kept = [key, 'carried_columns', 'cdc_state'] + cdc_lakehouse.position_columns() -%}
{%- set query -%}
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
{{- ', incoming.__cdc_surplus' if has_surplus }}
from {{ rows }} as incoming
{%- if not overwrite and (kept or dropped) %}
left outer join {{ target }} as stored
    on incoming.`{{ key }}` = stored.`{{ key }}`
{%- endif %}
{%- endset -%}
{%- if not has_surplus -%}
insert {{ 'overwrite table' if overwrite else 'into' }} {{ target }}
{{ query }}
{%- else -%}
{%- set hudi_key = '_hoodie_key' if '_hoodie_key' in stored else key -%}
merge into {{ target }} as stored
using ({{ query }}) as incoming
on stored.`{{ hudi_key }}` = incoming.`{{ hudi_key }}`
when matched and not incoming.__cdc_surplus then update set
    {% for column in stored %}`{{ column }}` = incoming.`{{ column }}`{{ ', ' if not loop.last }}{% endfor %}
when matched and incoming.__cdc_surplus then delete
when not matched and not incoming.__cdc_surplus then insert (`{{ stored | join('`, `') }}`)
    values (incoming.`{{ stored | join('`, incoming.`') }}`)
{%- endif -%}
{%- endmacro %}
