{# The positions at which the keys in a relation were deleted (see heirs_of). #}
{% macro deletes_of_keys(events, table, keys) -%}
select /*+ broadcast(wanted) */ distinct
    deletes.source_epoch,
    deletes.source_lsn
from (
    {{ change_history(events, table) | indent(4) }}
) as deletes
left semi join {{ keys }} as wanted
    on deletes.`{{ table['key'] }}` = wanted.`{{ table['key'] }}`
where deletes.op = 'd'
{%- endmacro %}
