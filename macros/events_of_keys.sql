{# The whole history of the keys in a relation (see settled_rows). #}
{% macro events_of_keys(events, table, keys) -%}
select /*+ broadcast(wanted) */ history.*
from (
    {{ change_history(events, table) | indent(4) }}
) as history
left semi join {{ keys }} as wanted
    on history.`{{ table['key'] }}` = wanted.`{{ table['key'] }}`
{%- endmacro %}
