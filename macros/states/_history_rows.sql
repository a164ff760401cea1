{#
    The versions of a history from the states of its keys, `states` (see row_states): one row for each
    time between two changes of a declared column. A version begins where the state differs from the
    one before, or a delete ends one. What a create left out is in `inherited` (see _inherited_values);
    without it these columns are null, and a version ends also where they change.

    Also `__cdc_lacks` (a create left values out, known or not), `__cdc_reason`, why the key has to be
    computed from bronze, and `__cdc_past` (the lowest point where its past may be another).
#}
{% macro _history_rows(table, states, inherited=none, is_increment=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set point = "named_struct('epoch', source_epoch, 'position', coalesce(__cdc_place.position, ''))" -%}
{%- set unknown = {} -%}
{%- for column in table['carried'] -%}
    {%- do unknown.update({column: 'not coalesce(__cdc_value_' ~ loop.index ~ '.is_known, false)'}) -%}
{%- endfor -%}
with
asked as (
    select
        *,
        max({{ cdc_lakehouse._reasons(table, true, is_increment) | indent(8) }}) over of_key as __cdc_reason,
        min(if(__cdc_part = 0, {{ point }}, null)) over of_key as __cdc_lowest,
        min(if(__cdc_part = 0 and op = 'd', {{ point }}, null)) over of_key as __cdc_deleted
    from {{ states }} as states
    window of_key as (partition by {{ key }})
),

known as (
    select
        states.*,
        {{ cdc_lakehouse.columns_where(unknown) | indent(8) }} as __cdc_unknown,
        {%- for column in table['carried'] if inherited %}
        previous.`{{ column }}` as __cdc_previous_{{ loop.index }},
        {%- endfor %}
        {{ 'max(previous.ingest_batch) over of_key' if inherited else 'cast(null as bigint)' }} as __cdc_previous_batch
    from asked as states
    {%- if inherited %}
    left join {{ inherited }} as previous
        on
            states.{{ key }} = previous.{{ key }}
            and states.__cdc_incarnation.op = 'c'
            and states.__cdc_incarnation.source_epoch = previous.source_epoch
            and states.__cdc_incarnation.source_position = previous.source_position
    {%- endif %}
    window of_key as (partition by states.{{ key }})
),

valued as (
    select
        *,
        named_struct(
            'is_deleted', is_deleted,
            {%- for column in table['others'] %}
            '{{ column }}', `{{ column }}`,
            {%- endfor %}
            {%- for column in table['carried'] %}
            {%- set state = '__cdc_value_%s' % loop.index %}
            '{{ column }}',
            {{- ' if(%s.is_known, %s.value, __cdc_previous_%s)' % (state, state, loop.index) if inherited
                else ' %s.value' % state }},
            {%- endfor %}
            'untyped_columns', untyped_columns
        ) as __cdc_row,
        case
            when __cdc_incarnation.op = 'c' and size(__cdc_unknown) > 0 then named_struct(
                'source_epoch', __cdc_incarnation.source_epoch, 'source_position', __cdc_incarnation.source_position
            )
        end as __cdc_inherited
    from known
    where not __cdc_overtakes
),

compared as (
    select
        *,
        lag(is_deleted) over so_far as __cdc_was_deleted,
        not (
            lag(__cdc_row) over so_far <=> __cdc_row
            {%- if not inherited and table['carried'] %}
            and lag(__cdc_inherited) over so_far <=> __cdc_inherited
            and (__cdc_inherited is null or lag(__cdc_unknown) over so_far <=> __cdc_unknown)
            {%- endif %}
        ) as __cdc_is_changed
    from valued
    window so_far as (
        partition by {{ key }} order by __cdc_place, __cdc_part desc, __cdc_delivery, event_id
    )
),

{#- A version begins, or a delete ends one. -#}
turns as (
    select
        *,
        not is_deleted and __cdc_is_changed as __cdc_is_begin,
        is_deleted and not coalesce(__cdc_was_deleted, true) as __cdc_is_end,
        count_if(not is_deleted and __cdc_is_changed) over of_key as __cdc_versions,
        coalesce(max(__cdc_version.number_before) over of_key, 0) as __cdc_versions_before,
        coalesce(max(__cdc_version.inherited) over of_key, array()) as __cdc_stored_points,
        collect_set(__cdc_inherited) over of_key as __cdc_points,
        max(case when __cdc_is_last then named_struct(
            'place', __cdc_place, 'is_deleted', is_deleted, 'unknown_columns', __cdc_unknown,
            'is_inheriting', __cdc_inherited is not null or coalesce(
                __cdc_read_at > __cdc_place.changed_at
                or (__cdc_read_at = __cdc_place.changed_at and op <> 'r'),
                false
            ),
            'last_read', __cdc_read
        ) end) over of_key as __cdc_state
    from compared
    window of_key as (partition by {{ key }})
),

numbered as (
    select
        *,
        __cdc_versions = 0 as __cdc_is_tombstone,
        __cdc_versions_before + greatest(count_if(__cdc_is_begin) over so_far, 1) as version_number,
        lead(named_struct(
            'at', __cdc_valid_from, 'epoch', source_epoch, 'position', __cdc_from_position
        )) over so_far as __cdc_next
    from turns
    where __cdc_is_begin or __cdc_is_end or (__cdc_is_last and __cdc_versions = 0)
    window so_far as (
        partition by {{ key }} order by __cdc_place, __cdc_part desc, __cdc_delivery, event_id
    )
)

select
    concat(cast({{ key }} as string), '#', version_number) as history_id,
    {%- for column in table['columns'] %}
    {{ key if column == table['key'] else '__cdc_row.`%s`' % column }} as `{{ column }}`,
    {%- endfor %}
    __cdc_valid_from as valid_from,
    if(__cdc_is_tombstone, __cdc_valid_from, __cdc_next.at) as valid_to,
    not __cdc_is_tombstone and __cdc_next is null as is_current,
    if(__cdc_is_tombstone, 'd', op) as op,
    source_epoch as from_epoch,
    __cdc_from_position as from_position,
    if(__cdc_is_tombstone, source_epoch, __cdc_next.epoch) as to_epoch,
    if(__cdc_is_tombstone, __cdc_from_position, __cdc_next.position) as to_position,
    version_number,
    untyped_columns,
    greatest(ingest_batch, __cdc_previous_batch) as ingest_batch,
    if(
        __cdc_versions = 0 or version_number = __cdc_versions_before + __cdc_versions,
        struct(__cdc_state.*, sort_array(array_union(__cdc_stored_points, __cdc_points)) as inherited),
        null
    ) as cdc_state,
    __cdc_inherited is not null as __cdc_lacks,
    true as __cdc_is_changed, cast(array() as array<string>) as __cdc_kept,
    if(__cdc_reason is null, __cdc_deleted, __cdc_lowest) as __cdc_past,
    __cdc_reason
from numbered
where __cdc_is_begin or __cdc_is_tombstone
{%- endmacro %}
