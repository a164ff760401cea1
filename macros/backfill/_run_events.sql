{# The change events that this run computes rows from, as CTEs that end with `events`. #}
{% macro _run_events(source, table) -%}
{%- set key, is_all = '`' ~ table['key'] ~ '`', not table['is_increment'] -%}
{%- set snapshots = table['snapshots'] if is_all else [] -%}
{%- set listed = table['source_names'].values() | sum(start=table['ignored_fields']) -%}
{%- set own = 'event_id, op, source_epoch, source_position, source_lsn, topic_generation, topic_partition,'
    ~ ' kafka_offset, changed_at, ingested_at, ingest_batch' -%}
{#- null where what is stored does not tell -#}
{%- set is_of_source = 'existing.topic = __cdc_truncate.topic and existing.__cdc_source_table = __cdc_truncate.source_table' -%}
{%- set is_before -%}
case
                when existing.source_epoch <> __cdc_truncate.source_epoch then existing.source_epoch < __cdc_truncate.source_epoch
                when existing.source_position is not null then existing.source_position < __cdc_truncate.source_position
                when existing.topic_partition = __cdc_truncate.topic_partition
                    and existing.topic_generation = __cdc_truncate.topic_generation
                    then existing.kafka_offset < __cdc_truncate.kafka_offset
                else existing.changed_at < __cdc_truncate.changed_at
            end
{%- endset -%}
arrived as (
    select * from {{ source }} where {{ key }} is not null and {{ table['until'] if is_all else table['arrived'] }}
),

{% if table['truncates'] or snapshots -%}
existing as (
    select
        {{ key }}, source_epoch, source_position, changed_at, topic, topic_generation, topic_partition,
        kafka_offset, op, __cdc_source_table, true as __cdc_is_live
    from arrived
    {%- if table['is_kept'] and is_all %}
    union all
    select
        target.{{ key }},
        {%- if table['is_history'] %}
        from_epoch, {# of a read without a position it is that of what it stands behind, here and below #}
        if(cdc_state.sequence.read_rank = 1 and from_position <=> cdc_state.sequence.position, null, from_position), valid_from,
        regexp_replace(cdc_state.sequence.topic_partition, '/[^/]*$', ''), cdc_state.sequence.topic_generation,
        cdc_state.sequence.topic_partition, cdc_state.sequence.kafka_offset, op, null, is_current
        {%- else %}
        source_epoch,
        if(op = 'r' and source_position <=> cdc_state.position_before_read, null, source_position), changed_at,
        regexp_replace(cdc_state.topic_partition, '/[^/]*$', ''), cdc_state.topic_generation,
        cdc_state.topic_partition, kafka_offset, op, null, not is_deleted
        {%- endif %}
    from {{ this }} as target
    {%- if 'wanted' in table %}
    left semi join {{ table['wanted'] }} as wanted on target.{{ key }} = wanted.{{ key }}
    {%- endif %}
    left anti join {{ source }} as known on target.{{ key }} = known.{{ key }}
        {%- if table['is_history'] %} and from_position is null and known.op = 'r' and known.source_position is null
        and known.changed_at >= valid_from and coalesce(known.changed_at < valid_to or valid_from = valid_to, true)
        {%- endif %}
    {%- endif %}
),

{% endif -%}
{%- if table['truncates'] -%}
truncates as (
    select struct(
        source_epoch, source_position, topic, topic_generation, {{ cdc_lakehouse.topic_partition() }} as topic_partition,
        source_table, struct(source_epoch as epoch, source_position as position) as at,
        min(kafka_offset) as kafka_offset, min(event_id) as event_id, min(source_lsn) as source_lsn,
        min(source_ts) as changed_at, min(ingested_at) as ingested_at, min(ingest_batch) as ingest_batch
    ) as __cdc_truncate
    from {{ table['bronze_relation'] }}
    where
        op = 't' and source_position in ('{{ table['truncates'] | map('last') | join("', '") }}') and {{ table['until'] }}
        and concat(source_epoch, '@', source_position) in ('{{ table['truncates'] | map('join', '@') | join("', '") }}')
    group by source_epoch, source_position, topic, topic_generation, {{ cdc_lakehouse.topic_partition() }}, source_table
),

truncated as (
    select
        {{ key }}, concat(__cdc_truncate.event_id, '-', {{ key }}) as event_id, 'd' as op, __cdc_truncate.source_epoch,
        __cdc_truncate.source_position, __cdc_truncate.source_lsn, __cdc_truncate.topic_generation,
        string(null) as topic_partition, bigint(null) as kafka_offset, __cdc_truncate.changed_at,
        __cdc_truncate.ingested_at, __cdc_truncate.ingest_batch
    from (
        select existing.{{ key }}, __cdc_truncate, max_by(
            {{ is_of_source }}, struct(existing.source_epoch, existing.source_position, existing.changed_at)
        ) filter (where ({{ is_of_source }}) is not null) as __cdc_is_of_source
        from truncates
        inner join existing on {{ is_before }}
        group by existing.{{ key }}, __cdc_truncate
    )
    where coalesce(__cdc_is_of_source, true)
),

{% endif -%}
{%- if snapshots -%}
{{ cdc_lakehouse._missing_rows(table) }},

{% endif -%}
events as (
    select
        `{{ table['columns'] | join('`, `') }}`, {{ own }}, is_deleted, unavailable_columns, untyped_columns,
        {#- those to warn of, none as a rule: what Debezium adds begins with two underscores #}
        filter(fields, field -> not (startswith(field, '__') or field in ('{{ listed | join("', '") }}'))) as fields,
        {% if table['truncates'] -%}
        if(op = 'r', array_max(transform(
            filter(
                __cdc_truncates, __cdc_truncate -> existing.source_epoch = __cdc_truncate.source_epoch
                and coalesce({{ is_of_source }}, true) and not {{ is_before }}
            ), __cdc_truncate -> __cdc_truncate.source_position
        )), null)
        {%- else %}string(null){% endif %} as position_before_read
    from arrived as existing
    {{ 'cross join (select collect_list(__cdc_truncate) as __cdc_truncates from truncates)' if table['truncates'] }}
    {%- for deletes in (['truncated'] if table['truncates'] else []) + (['missing'] if snapshots else []) %}
    union all
    select
        {% for column in table['columns'] %}{{ 'null as ' if column != table['key'] }}`{{ column }}`, {% endfor -%} {{ own }},
        true as is_deleted, array() as unavailable_columns, null as untyped_columns, null as fields, null as position_before_read
    from {{ deletes }}
    {%- endfor %}
)
{%- endmacro %}
