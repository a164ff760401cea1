{# What a silver table has stored of the keys of `events` (a CTE), as row_states reads it. #}
{% macro _stored_rows(table) -%}
{%- set key, is_gone = '`' ~ table['key'] ~ '`', not table['is_increment'] -%}
{%- set columns = cdc_lakehouse.position_columns() + [
    'topic_generation', 'topic_partition', 'position_before_read', 'last_read_at', 'unavailable_columns'] -%}
select
    target.{{ key }}, version.__cdc_part, null as event_id, version.{{ columns | join(', version.') }}, null as fields,
    {%- for column in table['unchanged'] + table['others'] %}
    {{ 'target.' if is_gone and column in table['stored'] else 'null as ' }}`{{ column }}`,
    {%- endfor %}
    version.__cdc_stored_state
from {{ this }} as target
{%- if 'wanted' in table or not is_gone %}
left semi join {{ table['wanted'] or '(select %s from events)' % key }} as wanted on target.{{ key }} = wanted.{{ key }}
{%- endif %}
{%- if is_gone %}
{%- if table['truncates'] %}
cross join (select collect_set(__cdc_truncate.at) as __cdc_truncates from truncates)
{%- endif %}
left anti join events as known
    on
        target.{{ key }} = known.{{ key }}
        and (
            target.source_epoch = known.source_epoch and (target.op = 'r') = (known.op = 'r')
            and if(
                target.op = 'r' and not target.is_deleted,
                target.changed_at = known.changed_at and target.source_lsn <=> known.source_lsn,
                target.source_position = known.source_position and (target.op = 'r' or target.is_deleted = known.is_deleted)
            )
            {%- if table['truncates'] %}
            or target.op = 'd' and target.kafka_offset is null
            and array_contains(__cdc_truncates, struct(target.source_epoch as epoch, target.source_position as position))
            and struct(known.source_epoch, known.source_position) < struct(target.source_epoch, target.source_position)
            {%- endif %}
        )
{%- endif %}
lateral view inline(concat(
    array(struct(
        1 as __cdc_part, {{ cdc_lakehouse.position_columns() | join(', ') }},
        cdc_state.topic_generation, cdc_state.topic_partition, cdc_state.position_before_read, cdc_state.last_read_at,
        transform(carried_columns, entry -> entry.column_name) as unavailable_columns, carried_columns as __cdc_stored_state
    )),
    transform(filter(carried_columns, entry -> entry.sequence.op is not null), entry -> struct(
        -1 as __cdc_part, entry.sequence.op, false as is_deleted, entry.sequence.source_epoch,
        entry.sequence.position as source_position, entry.sequence.source_lsn, entry.sequence.kafka_offset,
        entry.sequence.changed_at, timestamp(null) as ingested_at, bigint(null) as ingest_batch,
        cast(null as array<string>) as untyped_columns,
        if(entry.sequence.op = 'r', 1, -1) * entry.sequence.topic_generation as topic_generation, entry.sequence.topic_partition,
        case when entry.sequence.op = 'r' then entry.sequence.position end as position_before_read,
        timestamp(null) as last_read_at,
        filter(
            cast(array({{ "'" ~ table['unchanged'] | join("', '") ~ "'" if table['unchanged'] }}) as array<string>),
            name -> not (entry.is_known and name = entry.column_name)
        ) as unavailable_columns,
        cast(null as {{ cdc_lakehouse.carried_type() }}) as __cdc_stored_state
    ))
)) version as __cdc_part, {{ columns | join(', ') }}, __cdc_stored_state
{%- endmacro %}
