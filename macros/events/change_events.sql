{#
    The typed change events of a bronze table, one row per event, in the columns that the
    model declares under `meta` (see change_table).

    `rejection` says why an event cannot be typed, `unavailable_columns` which values it
    did not bring. Of a delete only the key is typed: the rest is the key's old row, or
    made-up defaults. Columns are read as text first, so that a value of the wrong type is
    seen and not lost.
#}
{% macro change_events(bronze) -%}
{%- set table = cdc_lakehouse.change_table_of(this) -%}
{%- set key = table['key'] -%}
{%- set key_columns = table['key_columns'] or [key] -%}
{%- set source_columns = table['columns'].keys() | list -%}
{%- if table['key_columns'] -%}
    {%- do source_columns.remove(key) -%}
{%- endif -%}
{%- set passed = [
    'event_id', 'topic', 'kafka_partition', 'kafka_offset', 'op', 'source_epoch',
    'source_position', 'source_lsn', 'topic_generation', 'topic_partition', 'changed_at',
    'ingested_at', 'ingest_batch', 'ingest_date', 'is_deleted', 'fields'
] -%}
with

events as (

    select * from {{ cdc_lakehouse.bronze_events(bronze) | indent(4) }} as bronze

    where op <> 't'

),

{#
    The row is the value itself in the flattened form, `after` (or `before`, for a
    delete) in the envelope, and either may sit in a `payload` beside its `schema`.

    A generator (`inline`) and not a function, because Spark folds the projections of a
    function into each other, and would parse the text once for every use of a field.
#}
opened as (

    select
        events.*,
        outside.*

    from events

    lateral view inline(array(from_json(
        value, '__op string, before string, after string, schema string, payload string'
    ))) outside as flat_op, before_row, after_row, outer_schema, payload

),

row_texts as (

    select
        *,
        case
            when flat_op is not null then value
            when payload is null or outer_schema is null
                then case when op = 'd' then before_row else after_row end
            when get_json_object(payload, '$.__op') is not null then payload
            when op = 'd' then get_json_object(payload, '$.before')
            else get_json_object(payload, '$.after')
        end as row_text

    from opened

),

texts as (

    select
        row_texts.*,
        source_ts as changed_at,
        {{ cdc_lakehouse.is_deleted('op', 'row_image.deleted') }} as is_deleted,
        json_object_keys(row_text) as fields
        {%- for column in source_columns %},
        `text_{{ column }}`
        {%- endfor %}

    from row_texts

    lateral view inline(array(from_json(
        coalesce(nullif(row_text, ''), '{}'),
        '__deleted string{% for column in source_columns %}, `{{ column }}` string{% endfor %}'
    ))) row_image as deleted
    {%- for column in source_columns %}, `text_{{ column }}`{% endfor %}

),

typed as (

    select
        {{ passed | join(',\n        ') }},
        key,
        {%- for column in source_columns %}
        `text_{{ column }}`,
        {%- endfor %}
        {%- for column, type in table['columns'].items() %}
        {%- if column == key %}
        {{ cdc_lakehouse.key_value(table) | indent(8) }} as `{{ column }}`,
        {%- elif column in cdc_lakehouse.carried_names(table) %}
        case
            when not is_deleted and not {{ cdc_lakehouse.is_unavailable('`text_' ~ column ~ '`') }}
                then {{ cdc_lakehouse.typed('`text_' ~ column ~ '`', type) }}
        end as `{{ column }}`,
        {%- else %}
        case
            when not is_deleted then {{ cdc_lakehouse.typed('`text_' ~ column ~ '`', type) }}
        end as `{{ column }}`,
        {%- endif %}
        {%- endfor %}
        filter(array(
            {%- for column in cdc_lakehouse.carried_names(table) if column in source_columns %}
            case
                when {{ cdc_lakehouse.is_unavailable('`text_' ~ column ~ '`') }} then '{{ column }}'
            end,
            {%- endfor %}
            cast(null as string)
        ), name -> name is not null and not is_deleted) as unavailable_columns

    from texts

),

checked as (

    select
        {{ passed | join(',\n        ') }},
        `{{ table['columns'] | join('`, `') }}`,
        unavailable_columns,
        nullif(concat_ws('; ',
            {%- for column in key_columns %}
            {%- set text = cdc_lakehouse.key_text(column) %}
            {%- set type = table['columns'][column] %}
            {%- set value = cdc_lakehouse.typed(text, type) if table['key_columns'] else '`' ~ key ~ '`' %}
            case
                when {{ text }} is null then 'no {{ column }}, which is the key'
                when {{ value }} is null
                    then concat('{{ column }}: \'', left({{ text }}, 60), '\' is no {{ type }}')
            end
            {{- ',' if not loop.last }}
            {%- endfor %}
            {%- for column, type in table['columns'].items()
                if column != key and column not in key_columns
                and type not in ['string', 'json', 'bpchar'] %},
            case
                when not is_deleted and `text_{{ column }}` is not null and `{{ column }}` is null
                    then concat('{{ column }}: \'', left(`text_{{ column }}`, 60), '\' is no {{ type }}')
            end
            {%- endfor %}
        ), '') as rejection

    from typed

)

select * from checked
{%- endmacro %}
