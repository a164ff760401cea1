{#
    The statement that merges rows into a table. Where `kept`, the column `fold_kept` names those
    whose value stays as it is. `columns` are those to write.
#}
{% macro merge_statement(target, rows, columns, kept) -%}
{%- set key = config.get('unique_key') -%}
merge into {{ target }} as stored
using {{ rows }} as incoming
    on stored.`{{ key }}` = incoming.`{{ key }}`
when matched then update set
{%- for column in columns %}
    `{{ column }}` = {% if kept and column != key and column not in position_columns() -%}
        case
            when array_contains(incoming.fold_kept, '{{ column }}') then stored.`{{ column }}`
            else incoming.`{{ column }}`
        end
    {%- else -%}
        incoming.`{{ column }}`
    {%- endif -%}
    {{- ',' if not loop.last }}
{%- endfor %}
when not matched then insert (`{{ columns | join('`, `') }}`)
values (incoming.`{{ columns | join('`, incoming.`') }}`)
{%- endmacro %}
