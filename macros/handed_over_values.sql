{#
    The rows that deletes ended, one key change further back: what a row lacked because it
    began with a key change itself is in the row before it (see settled_rows).
#}
{% macro handed_over_values(table, later, earlier) -%}
select
    later.former_epoch,
    later.former_lsn,
    earlier.former_life_start
    {%- for column in table['columns'] if column != table['key'] %},
    coalesce(later.`former_{{ column }}`, earlier.`former_{{ column }}`) as `former_{{ column }}`
    {%- endfor %}
from {{ later }} as later
left join {{ earlier }} as earlier
    on
        later.former_life_start.epoch = earlier.former_epoch
        and later.former_life_start.lsn = earlier.former_lsn
{%- endmacro %}
