{#
    The keys that rows had after a key change left values out, from the positions of the old
    keys' deletes, without those that are known already (see heirs_of).
#}
{% macro later_keys(events, table, deletes, known_keys) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
select /*+ broadcast(deletes) */ distinct creates.{{ key }}
from (
    {{ change_history(events, table) | indent(4) }}
) as creates
inner join {{ deletes }} as deletes
    on
        creates.source_epoch = deletes.source_epoch
        and creates.source_lsn = deletes.source_lsn
{%- for keys in known_keys %}
left anti join {{ keys }} as known_{{ loop.index }}
    on creates.{{ key }} = known_{{ loop.index }}.{{ key }}
{%- endfor %}
where creates.op = 'c' and size(creates.unavailable_columns) > 0
{%- endmacro %}
