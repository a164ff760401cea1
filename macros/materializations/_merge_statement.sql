{#
    The statement that writes versions and removes surplus ones, in one commit. Hudi tries all
    updates before deletes, so that each condition excludes the others.
#}
{% macro _merge_statement(target, rows, columns) -%}
merge into {{ target }} as stored
using (
    select `{{ columns | join('`, `') }}`, __cdc_surplus from {{ rows }}
) as incoming
on stored.history_id = incoming.history_id
when matched and not incoming.__cdc_surplus then update set
    {%- for column in columns %}
    `{{ column }}` = incoming.`{{ column }}`{{ ',' if not loop.last }}
    {%- endfor %}
when matched and incoming.__cdc_surplus then delete
when not matched and not incoming.__cdc_surplus then insert (`{{ columns | join('`, `') }}`)
    values (incoming.`{{ columns | join('`, incoming.`') }}`)
{%- endmacro %}
