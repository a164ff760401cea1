{#
    The rows that deletes ended, twice as many key changes back as in `former`: what a row
    lacked because it began with a key change itself is in the row before it (see
    settled_rows).
#}
{% macro handed_over_values(table, former) -%}
select
    later.former_epoch,
    later.former_lsn,
    greatest(later.former_batch, earlier.former_batch) as former_batch,
    earlier.former_life_start
    {%- for column in table['columns'] if column != table['key'] %},
    coalesce(later.`former_{{ column }}`, earlier.`former_{{ column }}`) as `former_{{ column }}`
    {%- endfor %}
from {{ former }} as later
left join {{ former }} as earlier
    on
        later.former_life_start.epoch = earlier.former_epoch
        and later.former_life_start.lsn = earlier.former_lsn
{%- endmacro %}
