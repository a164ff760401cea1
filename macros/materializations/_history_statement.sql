{# The statement that writes versions of a history (`state`, see _settled_rows) in one commit: an upsert, or
   where some are surplus a merge, which removes them. #}
{% macro _history_statement(target, table, state, types, columns) -%}
{%- set removed = cdc_lakehouse.stored_table(target)['columns'].keys() | reject('in', types) | list -%}
{%- set began = ['`' ~ table['key'] ~ '`', 'from_epoch', 'from_position', 'valid_from'] -%}
{%- set written = columns + removed -%}
{%- set rows -%}
(
    select versions.*
    {%- for column in removed %}, before.`{{ column }}`{% endfor %}
    from {{ state['rows'] }} as versions
    {%- if removed %}
    left outer join (
        select {{ began | join(', ') }}
        {%- for column in removed %}, max_by(`{{ column }}`, version_number) as `{{ column }}`{% endfor %}
        from {{ target }}
        group by {{ began | join(', ') }}
    ) as before
        on {% for each in began %}versions.{{ each }} <=> before.{{ each }}{{ ' and ' if not loop.last }}{% endfor %}
    {%- endif %}
)
{%- endset -%}
{%- if not state['has_surplus'] -%}
{{ cdc_lakehouse._insert_statement(target, rows, types.keys() | list + removed, overwrite=false, kept=state['kept']) }}
{%- else -%}
merge into {{ target }} as stored
using (
    select `{{ written | join('`, `') }}`, __cdc_surplus from {{ rows }}
) as incoming
on stored.history_id = incoming.history_id
when matched and not incoming.__cdc_surplus then update set
    {%- for column in written %}
    `{{ column }}` = incoming.`{{ column }}`{{ ',' if not loop.last }}
    {%- endfor %}
when matched and incoming.__cdc_surplus then delete
when not matched and not incoming.__cdc_surplus then insert (`{{ written | join('`, `') }}`)
    values (incoming.`{{ written | join('`, incoming.`') }}`)
{%- endif -%}
{%- endmacro %}
