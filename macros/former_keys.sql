{#
    The keys that the rows of a history had before a key change took values with it, without
    those that are known already (see settled_rows).
#}
{% macro former_keys(events, table, history, known_keys) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
select /*+ broadcast(creates) */ distinct deletes.{{ key }}
from (
    {{ change_history(events, table) | indent(4) }}
) as deletes
inner join (
    select distinct source_epoch, source_lsn from {{ history }}
    where op = 'c' and size(unavailable_columns) > 0
) as creates
    on
        deletes.source_epoch = creates.source_epoch
        and deletes.source_lsn = creates.source_lsn
{%- for keys in known_keys %}
left anti join {{ keys }} as known_{{ loop.index }}
    on deletes.{{ key }} = known_{{ loop.index }}.{{ key }}
{%- endfor %}
where deletes.op = 'd'
{%- endmacro %}
