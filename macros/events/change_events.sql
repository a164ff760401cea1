{#
    The typed change events of a bronze table, one row per event, in the columns that the
    model declares under `meta` (see change_table).

    `rejection` says why an event has no key, `unavailable_columns` which values it did not
    bring, `untyped_columns` which values their types cannot hold: these are null. Of a delete
    only the key is typed: the rest is the key's old row, or made-up defaults, and
    `untyped_columns` is null. Columns are read as text first, so that a value of the wrong
    type is seen.

    Args: `bronze`, a relation; `table`, the declaration, where it is not the model's; `only`, a
    semi join that narrows the rows `bronze` before their JSON is parsed.
#}
{% macro change_events(bronze, table=none, only='') -%}
{%- set table = table or cdc_lakehouse.change_table(this) -%}
{%- set key = table['key'] -%}
{%- set key_columns = table['key_columns'] or [key] -%}
{%- set carried_names = table['carried'] -%}
{%- set placeholder = var(
    'cdc_lakehouse_unavailable_value', '__debezium_unavailable_value'
) | replace('\\', '\\\\') | replace("'", "\\'") -%}
{%- set passed = [
    'event_id', 'topic', 'kafka_partition', 'kafka_offset', 'op', 'source_epoch',
    'source_position', 'source_lsn', 'topic_generation', 'topic_partition', 'changed_at',
    'ingested_at', 'ingest_batch', 'ingest_date', 'is_deleted', 'fields'
] -%}
with

events as (

    select bronze.* from {{ cdc_lakehouse.bronze_events(bronze) | indent(4) }} as bronze

    {{ only | indent(4) }}

    where bronze.op <> 't'

),

{#
    The row is the value itself in the flattened form, `after` (or `before`, for a
    delete) in the envelope, and either may sit in a `payload` beside its `schema`.

    A generator and not a function, here and for the row, because Spark folds the projections of a
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
        {#- the unwrap transform writes a text, the envelope has only the operation -#}
        coalesce(op = 'd' or lower(row_image.__deleted) = 'true', false) as is_deleted,
        json_object_keys(row_text) as fields,
        row_image

    from row_texts

    lateral view explode(array(cast(
        from_json(
            coalesce(nullif(row_text, ''), '{}'),
            '__deleted string
            {%- for name in table['source_names'].values() %}, `{{ name }}` string{% endfor %}'
        ) as struct<
            __deleted: string
            {%- for column in table['source_names'] %}, `{{ column }}`: string{% endfor %}
        >
    ))) opened_row as row_image

),

sent as (

    select
        *,
        {%- if carried_names %}
        case
            when is_deleted then array()
            else transform(
                filter(
                    array(
                        {%- for column in carried_names %}
                        struct('{{ column }}' as name, row_image.`{{ column }}` as text)
                        {{- ',' if not loop.last }}
                        {%- endfor %}
                    ),
                    {#- Debezium had no value to send: it is not in the write-ahead log. A bytea's
                    placeholder comes in base64, that of an array of texts as its one element. #}
                value -> coalesce(value.text in (
                    '{{ placeholder }}',
                    base64(cast('{{ placeholder }}' as binary)),
                    '["{{ placeholder }}"]'
                ), false)
                ),
                value -> value.name
            )
        end as unavailable_columns
        {%- else %}
        cast(array() as array<string>) as unavailable_columns
        {%- endif %}

    from texts

),

typed as (

    select
        {{ passed | join(',\n        ') }},
        key,
        row_image,
        unavailable_columns,
        {%- for column in table['columns'] %}
        {%- set type = table['columns'][column] %}
        {%- if column == key %}
        {{ cdc_lakehouse.key_value(table) | indent(8) }}
        {%- elif column in carried_names %}
        case
            when not is_deleted and not array_contains(unavailable_columns, '{{ column }}')
                then {{ cdc_lakehouse._typed('row_image.`' ~ column ~ '`', type) }}
        end
        {%- else %}
        case when not is_deleted then {{ cdc_lakehouse._typed('row_image.`' ~ column ~ '`', type) }} end
        {%- endif %} as `{{ column }}`{{ ',' if not loop.last }}
        {%- endfor %}

    from sent

),

checked as (

    select
        {{ passed | join(',\n        ') }},
        unavailable_columns,
        `{{ table['columns'] | join('`, `') }}`,
        case
            when not is_deleted then filter(
                cast(array(
                    {%- for column in table['columns']
                        if column not in [key] + key_columns + carried_names %}
                    if(`{{ column }}` is null and row_image.`{{ column }}` is not null, '{{ column }}', null)
                    {{- ',' if not loop.last }}
                    {%- endfor %}
                ) as array<string>),
                name -> name is not null
            )
        end as untyped_columns,
        nullif(concat_ws('; ',
            {%- for column in key_columns %}
            {%- set text = cdc_lakehouse._key_text(table, column) %}
            {%- set type = table['columns'][column] %}
            {%- set value = cdc_lakehouse._typed(text, type) if table['key_columns'] else '`' ~ key ~ '`' %}
            case
                when {{ text }} is null then 'no {{ column }}, which is the key'
                when {{ value }} is null
                    then concat('{{ column }}: \'', left({{ text }}, 60), '\' is no {{ type }}')
            end
            {{- ',' if not loop.last }}
            {%- endfor %}
        ), '') as rejection

    from typed

)

select * from checked
{%- endmacro %}
