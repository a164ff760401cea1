{# The rows of a silver table: of each key the last of its `states` (see row_states). #}
{% macro _current_rows(table, states) -%}
{%- set is_increment, carried_type = table['is_increment'], cdc_lakehouse.carried_type() -%}
{%- set position, kept = cdc_lakehouse.position_columns(), dict.fromkeys(table['others'], '__cdc_part = 1') -%}
{%- set values = {
    'source_position': '__cdc_position as ', 'kafka_offset': '__cdc_first_offset as ', 'ingest_batch': '__cdc_batch as '
} -%}
{%- for column in table['unchanged'] -%}
    {%- do kept.update({column: '__cdc_value_%s.part <> 0' % loop.index}) -%}
    {%- do values.update({column: 'if(__cdc_is_whole, `%s`, __cdc_value_%s.value) as ' % (column, loop.index)}) -%}
{%- endfor -%}
select
    `{{ table['columns'] | join('`, `') }}`, {{ position | join(', ') }}, carried_columns, cdc_state,
    exists(carried_columns, entry -> entry.sequence.op = 'c') as __cdc_lacks, __cdc_fields, {{ cdc_lakehouse._reasons(table) | indent(4) }} as __cdc_reason,
    {%- if is_increment %}
    __cdc_kept,
    __cdc_stored is null or __cdc_part = 0 or not (
        kafka_offset <=> __cdc_stored.kafka_offset
        and cdc_state.position_before_read <=> __cdc_stored.position_before_read
        and cdc_state.last_read_at <=> __cdc_stored.last_read_at
        and carried_columns <=> __cdc_stored.carried_columns
    ) as __cdc_is_changed,
    __cdc_lowest, if(__cdc_lowest_sequence < __cdc_stored.sequence, __cdc_lowest, __cdc_deleted) as __cdc_past
    {%- else %}
    cast(array() as array<string>) as __cdc_kept, true as __cdc_is_changed
    {%- endif %}
from (
    select
        {%- for column in table['columns'].keys() | list + position %}
        {{ values.get(column, '') }}`{{ column }}`,
        {%- endfor %}
        struct(
            topic_generation, topic_partition, case when __cdc_sequence.read_rank = 1 then __cdc_sequence.position end as position_before_read,
            __cdc_last_read_at as last_read_at
        ) as cdc_state,
        if(size(unavailable_columns) = 0, cast(array() as {{ carried_type }}), filter(cast(array(
            {%- for column in table['unchanged'] %}
            struct('{{ column }}', coalesce(__cdc_value_{{ loop.index }}.is_known, false), coalesce(
                __cdc_value_{{ loop.index }}.sequence,
                {#- of nulls, and not null itself: Spark's interpreted projections fail on a null struct in an array #}
                from_json('[{"sequence": {}}]', '{{ carried_type }}')[0].sequence
            )){{ ',' if not loop.last }}
            {%- endfor %}
        ) as {{ carried_type }}), entry -> array_contains(unavailable_columns, entry.column_name))) as carried_columns,
        __cdc_fields
        {%- if is_increment %},
        __cdc_stored, __cdc_sequence, __cdc_part, __cdc_lowest_sequence, __cdc_highest_sequence, __cdc_lowest, __cdc_deleted,
        __cdc_unchanged_sequence, __cdc_lowest_offset, __cdc_read, {{ cdc_lakehouse.columns_where(kept) | indent(8) }} as __cdc_kept
        {%- endif %}
    from {{ states }}
    where __cdc_is_last
)
{%- endmacro %}
