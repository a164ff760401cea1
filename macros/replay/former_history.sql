{# The history of former keys, under the keys that came after them (see replayed_rows). #}
{% macro former_history(events, table, former) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
select
    {%- for column in cdc_lakehouse.event_columns(table) if column != 'ingest_batch' %}
    {{ 'former.' if column == table['key'] else 'history.' }}`{{ column }}`,
    {%- endfor %}
    greatest(history.ingest_batch, former.ended_batch) as ingest_batch,
    former.fold_bound_epoch,
    former.fold_bound_position
from (
    {{ cdc_lakehouse.change_history(
        events, table, '(select former_key as ' ~ key ~ ' from ' ~ former ~ ')'
    ) | indent(4) }}
) as history
inner join {{ former }} as former
    on history.{{ key }} = former.former_key
{%- endmacro %}
