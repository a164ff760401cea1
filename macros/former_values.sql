{# The rows that deletes ended, by the delete's position (see settled_rows). #}
{% macro former_values(table, filled) -%}
select
    source_epoch as former_epoch,
    source_lsn as former_lsn,
    newest_batch as former_batch,
    former_life_start
    {%- for column in table['columns'] if column != table['key'] %},
    `former_{{ column }}`
    {%- endfor %}
from {{ filled }}
where op = 'd'
{%- endmacro %}
