{# The statement that writes versions of a history (`state`, see _settled_rows) in one commit. #}
{% macro _history_statement(target, table, state, types) -%}
{%- set removed = cdc_lakehouse.stored_table(target)['columns'].keys() | reject('in', types) | list -%}
{%- set began = ['`' ~ table['key'] ~ '`', 'from_epoch', 'from_position', 'valid_from'] -%}
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
{{ cdc_lakehouse._insert_statement(target, rows, types.keys() | list + removed, overwrite=false, kept=state['kept'],
    has_surplus=state['has_surplus']) }}
{%- endmacro %}
