{#
    The stored rows of a silver table whose event bronze has no more, of the keys in `keys` (a
    relation) or of all: a query, which reads the CTE `events`. They are versions of a key that is
    computed from bronze: what no event tells, the stored row does. Of a read that a complete snapshot
    lacks, and of a truncate, bronze decides again where it has what they are decided by.
#}
{% macro _gone_rows(table, keys=none) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set truncates = cdc_lakehouse.decided_truncates('apply') if execute else [] -%}
select
    {%- set stored = cdc_lakehouse.stored_columns(this) %}
    {%- for column in table['columns'] %}
    {{ 'target.`%s`' % column if column in stored else 'null as `%s`' % column }},
    {%- endfor %}
    target.{{ cdc_lakehouse.position_columns() | join(', target.') }}, target.carried_columns, target.cdc_state
from {{ this }} as target
{%- if truncates %}
cross join (
    select collect_set(named_struct(
        'epoch', __cdc_truncate.source_epoch, 'position', __cdc_truncate.source_position
    )) as __cdc_truncates
    from {{ cdc_lakehouse._truncates(
        table, truncates, cdc_lakehouse.arrived_until_this_run(table['bronze'])
    ) | indent(12) }}
)
{%- endif %}
{%- if keys %}
left semi join {{ keys }} as wanted
    on target.{{ key }} = wanted.{{ key }}
{%- endif %}
left anti join events as known
    on
        target.{{ key }} = known.{{ key }}
        and (
            (
                target.source_epoch = known.source_epoch
                and (target.op = 'r') = (known.op = 'r')
                and case
                    when target.op = 'r' and not target.is_deleted
                        then target.changed_at = known.changed_at and target.source_lsn <=> known.source_lsn
                    when target.op = 'r' then target.source_position = known.source_position
                    else target.source_position = known.source_position and target.is_deleted = known.is_deleted
                end
            )
            {%- if truncates %}
            or (
                target.op = 'd'
                and target.kafka_offset is null
                and array_contains(
                    __cdc_truncates, named_struct('epoch', target.source_epoch, 'position', target.source_position)
                )
                and named_struct('epoch', known.source_epoch, 'position', known.source_position)
                < named_struct('epoch', target.source_epoch, 'position', target.source_position)
            )
            {%- endif %}
        )
{%- endmacro %}
