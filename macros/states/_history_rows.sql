{# The versions of a history from the `states` of its keys (see row_states). #}
{% macro _history_rows(table, states) -%}
{%- set key, unknown = '`' ~ table['key'] ~ '`', {} -%}
{%- for column in table['unchanged'] -%}
    {%- set state = '__cdc_value_%s' % loop.index -%}
    {%- do unknown.update({column: 'not coalesce(%s.is_known and %s.part < 2, false)' % (state, state)}) -%}
{%- endfor -%}
with
asked as (
    select
        *,
        max({{ cdc_lakehouse._reasons(table) | indent(8) }}) over (partition by {{ key }}) as __cdc_reason,
        {{ cdc_lakehouse.columns_where(unknown) | indent(8) }} as __cdc_unknown,
        named_struct(
            'is_deleted', is_deleted, 'untyped_columns', untyped_columns
            {%- for column in table['others'] %}, '{{ column }}', `{{ column }}`{% endfor %}
            {%- for column in table['unchanged'] %}, '{{ column }}', __cdc_value_{{ loop.index }}.value{% endfor %}
        ) as __cdc_row
    from {{ states }} as states
),

compared as (
    select
        *,
        case when __cdc_incarnation.op = 'c' and size(__cdc_unknown) > 0
            then struct(__cdc_incarnation.source_epoch, __cdc_incarnation.source_position) end as __cdc_inherited,
        not is_deleted and not (lag(__cdc_row) over so_far <=> __cdc_row) as __cdc_is_begin,
        is_deleted and not coalesce(lag(is_deleted) over so_far, true) as __cdc_is_end
    from asked
    where not __cdc_overtakes
    window so_far as (partition by {{ key }} order by __cdc_number desc)
),

turns as (
    select
        *,
        count_if(__cdc_is_begin) over of_key as __cdc_versions,
        {{ 'coalesce(max(__cdc_stored_state.number_before) over of_key, 0)' if table['is_kept'] else 0 }} as __cdc_versions_before,
        max(case when __cdc_is_last then struct(
            __cdc_sequence as sequence, is_deleted, __cdc_unknown as unknown_columns,
            __cdc_inherited is not null or coalesce(
                __cdc_read_at > __cdc_sequence.changed_at or (__cdc_read_at = __cdc_sequence.changed_at and op <> 'r'), false
            ) as is_inheriting,
            struct(__cdc_read.topic_generation, __cdc_read.topic_partition, __cdc_read.kafka_offset) as last_read
        ) end) over of_key as __cdc_state,
        sort_array(array_union(
            {{ 'coalesce(max(__cdc_stored_state.inherited) over of_key, array())' if table['is_kept'] else 'array()' }},
            collect_set(__cdc_inherited) over of_key
        )) as __cdc_points
    from compared
    window of_key as (partition by {{ key }})
),

numbered as (
    select
        *,
        __cdc_versions = 0 as __cdc_is_tombstone,
        __cdc_versions_before + greatest(count_if(__cdc_is_begin) over so_far, 1) as version_number,
        lead(struct(__cdc_valid_from as at, source_epoch as epoch, __cdc_from_position as position)) over so_far as __cdc_next
    from turns
    where __cdc_is_begin or __cdc_is_end or (__cdc_is_last and __cdc_versions = 0)
    window so_far as (partition by {{ key }} order by __cdc_number desc)
)

select
    concat(cast({{ key }} as string), '#', version_number) as history_id,
    {%- for column in table['columns'] %}
    {{ key if column == table['key'] else '__cdc_row.`%s`' % column }} as `{{ column }}`,
    {%- endfor %}
    __cdc_valid_from as valid_from, if(__cdc_is_tombstone, __cdc_valid_from, __cdc_next.at) as valid_to,
    not __cdc_is_tombstone and __cdc_next is null as is_current,
    if(__cdc_is_tombstone, 'd', op) as op, source_epoch as from_epoch, __cdc_from_position as from_position,
    if(__cdc_is_tombstone, source_epoch, __cdc_next.epoch) as to_epoch,
    if(__cdc_is_tombstone, __cdc_from_position, __cdc_next.position) as to_position,
    version_number, untyped_columns, __cdc_batch as ingest_batch,
    case when __cdc_versions = 0 or version_number = __cdc_versions_before + __cdc_versions
        then struct(__cdc_state.*, __cdc_points as inherited) end as cdc_state,
    __cdc_inherited is not null as __cdc_lacks, __cdc_reason,
    {%- if table['is_increment'] %}
    __cdc_lowest, __cdc_deleted as __cdc_past,
    {%- endif %}
    true as __cdc_is_changed, cast(array() as array<string>) as __cdc_kept
from numbered
where __cdc_is_begin or __cdc_is_tombstone
{%- endmacro %}
