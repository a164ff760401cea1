{#
    The rows of a silver table from the last states of its keys, `states` (see row_states and
    _last_states); what a create left out is in `inherited` (see _inherited_values).

    Also `__cdc_lacks` (a create left values out, known or not), `__cdc_unlisted_fields` (of the
    events, those that no column holds) and `__cdc_reason`, why the key has to be computed from
    bronze; of an increment `__cdc_is_changed` (the row differs from the stored one), `__cdc_kept`
    (columns whose value is the stored row's) and `__cdc_past` (the lowest point where the key's past
    may be another: rows of other keys inherit from there).
#}
{% macro _current_rows(table, states, inherited=none, is_increment=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set carried_type = cdc_lakehouse.carried_type() -%}
{%- set values = {} -%}
{%- set known = {} -%}
{%- set kept = dict.fromkeys(table['others'], '__cdc_part = 1') -%}
{%- for column in table['carried'] -%}
    {%- set state = '__cdc_value_%s' % loop.index -%}
    {%- do kept.update({column: state ~ '.part > 0'}) -%}
    {%- do known.update({column: 'coalesce(' ~ state ~ '.is_known, false)'}) -%}
    {%- do values.update({column: state ~ '.value'}) -%}
    {%- if inherited -%}
        {%- do values.update({
            column: 'if(' ~ known[column] ~ ', ' ~ state ~ '.value, previous.`' ~ column ~ '`)'
        }) -%}
        {%- do known.update({
            column: known[column] ~ " or coalesce(not array_contains(previous.__cdc_lacks, '" ~ column ~ "'), false)"
        }) -%}
    {%- endif -%}
{%- endfor %}
{%- set described -%}
    select
        {%- for column in table['columns'] %}
        {{ values.get(column, 'states.`%s`' % column) }} as `{{ column }}`,
        {%- endfor %}
        states.op, states.is_deleted, states.source_epoch, states.source_position, states.source_lsn,
        states.__cdc_first_offset as kafka_offset, states.changed_at, states.ingested_at,
        {{ 'greatest(states.ingest_batch, previous.ingest_batch)' if inherited else 'states.ingest_batch' }} as ingest_batch,
        states.untyped_columns,
        named_struct(
            'topic_generation', states.topic_generation, 'topic_partition', states.topic_partition,
            'position_before_read', case when states.__cdc_place.read_rank = 1 then states.__cdc_place.position end,
            'last_read_at', states.last_read_at
        ) as cdc_state,
        filter(
            cast(array(
                {%- for column in table['carried'] %}
                named_struct(
                    'column_name', '{{ column }}', 'is_known', {{ known[column] }},
                    {#- a place of nulls, and not null itself: Spark's interpreted projections fail on
                        a null struct in an array #}
                    'place', coalesce(
                        __cdc_value_{{ loop.index }}.place, from_json('[{"place": {}}]', '{{ carried_type }}')[0].place
                    )
                )
                {{- ',' if not loop.last }}
                {%- endfor %}
            ) as {{ carried_type }}),
            entry -> array_contains(states.unavailable_columns, entry.column_name)
        ) as carried_columns,
        filter(
            states.fields,
            name -> not startswith(name, '__')
            and name not in (
                '{{ (table['source_names'].values() | sum(start=[]) + table['ignored_fields']) | join("', '") }}'
            )
        ) as __cdc_unlisted_fields
        {%- if is_increment %},
        __cdc_stored, __cdc_place, __cdc_part, __cdc_first_offset, __cdc_lowest_place, __cdc_highest_place,
        __cdc_lowest, __cdc_deleted, __cdc_carried_place, __cdc_read,
        {{ cdc_lakehouse.columns_where(kept) | indent(8) }} as __cdc_kept
        {%- endif %}
    from {{ states }} as states
    {%- if inherited %}
    left join {{ inherited }} as previous
        on
            states.{{ key }} = previous.{{ key }}
            and states.__cdc_incarnation.op = 'c'
            and states.__cdc_incarnation.source_epoch = previous.source_epoch
            and states.__cdc_incarnation.source_position = previous.source_position
    {%- endif %}
{%- endset -%}
select
    `{{ table['columns'] | join('`, `') }}`,
    {{ cdc_lakehouse.position_columns() | join(', ') }}, carried_columns, cdc_state,
    {%- if is_increment %}
    (
        __cdc_stored is null
        or __cdc_part = 0
        or not (
            kafka_offset <=> __cdc_stored.kafka_offset
            and cdc_state.position_before_read <=> __cdc_stored.position_before_read
            and cdc_state.last_read_at <=> __cdc_stored.last_read_at
            and carried_columns <=> __cdc_stored.carried_columns
        )
    ) as __cdc_is_changed,
    __cdc_kept,
    case
        when __cdc_lowest_place < __cdc_stored.place or __cdc_reason is not null then __cdc_lowest
        else __cdc_deleted
    end as __cdc_past,
    {%- else %}
    true as __cdc_is_changed, cast(array() as array<string>) as __cdc_kept,
    cast(null as struct<epoch: int, position: string>) as __cdc_past,
    {%- endif %}
    __cdc_lacks, __cdc_unlisted_fields, __cdc_reason
from (
    select
        *,
        exists(carried_columns, entry -> entry.place.op = 'c') as __cdc_lacks,
        {{ cdc_lakehouse._reasons(table, false, is_increment) | indent(8) }} as __cdc_reason
    from (
        {{ described | indent(8) }}
    )
)
{%- endmacro %}
