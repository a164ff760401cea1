{#
    The last state of each key of `placed`, in the columns of row_states that _current_rows reads, by
    an aggregation: a current row needs no window over all of its versions. With `has_stored` also
    what tells whether the key has to be computed from bronze. A CTE.

    The newest version is the one with the greatest place, and so is the newest of each carried
    column: a create, a delete and a read begin an incarnation, they bring every column, and one that they
    left out is unknown from then on.
#}
{% macro _last_states(table, has_stored=false) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
last_states as (
    select
        {{ key }}, __cdc_newest.*,
        {%- for _ in table['carried'] %} __cdc_value_{{ loop.index }},{% endfor %}
        {%- if has_stored %}
        __cdc_stored, __cdc_lowest_place, __cdc_highest_place, __cdc_lowest, __cdc_deleted,
        __cdc_carried_place, __cdc_read,
        {%- endif %}
        ingest_batch, last_read_at, fields
    from (
        select
            {{ key }},
            max(named_struct(
                '__cdc_place', __cdc_place, '__cdc_part', __cdc_part,
                '__cdc_delivery', -kafka_offset, 'event_id', event_id,
                '__cdc_first_offset', __cdc_first_offset, 'unavailable_columns', unavailable_columns,
                {%- for column in table['others'] + cdc_lakehouse.position_columns() + ['topic_generation', 'topic_partition']
                    if column != 'ingest_batch' %}
                '{{ column }}',
                {{- ' greatest(source_position, __cdc_place.position)' if column == 'source_position' else ' `%s`' % column }}
                {{- ',' if not loop.last }}
                {%- endfor %}
            )) filter (where __cdc_part < 2) as __cdc_newest,
            {%- for column in table['carried'] %}
            {%- set is_known = "not array_contains(unavailable_columns, '" ~ column ~ "')" %}
            max(named_struct(
                'place', __cdc_place, 'is_known', {{ is_known }},
                'part', __cdc_part, 'value', `{{ column }}`
            )) filter (where {{ is_known }} or op in ('c', 'd', 'r')) as __cdc_value_{{ loop.index }},
            {%- endfor %}
            {%- if has_stored %}
            first(struct(
                __cdc_place as place, __cdc_first_offset, op, is_deleted, topic_generation, topic_partition,
                kafka_offset, position_before_read, last_read_at, __cdc_stored_columns as carried_columns
            )) filter (where __cdc_part = 1) as __cdc_stored,
            min(__cdc_place) filter (where __cdc_part = 0) as __cdc_lowest_place,
            max(__cdc_place) filter (where __cdc_part = 0) as __cdc_highest_place,
            min(named_struct('epoch', source_epoch, 'position', coalesce(__cdc_place.position, '')))
                filter (where __cdc_part = 0) as __cdc_lowest,
            min(named_struct('epoch', source_epoch, 'position', source_position))
                filter (where __cdc_part = 0 and op = 'd') as __cdc_deleted,
            max(__cdc_place) filter (where __cdc_part = 2) as __cdc_carried_place,
            max(named_struct('place', __cdc_place, 'changed_at', changed_at))
                filter (where __cdc_part = 0 and op = 'r') as __cdc_read,
            {%- endif %}
            max(ingest_batch) as ingest_batch,
            max(last_read_at) as last_read_at,
            array_distinct(flatten(collect_set(fields))) as fields
        from placed
        group by {{ key }}
    )
)
{%- endmacro %}
