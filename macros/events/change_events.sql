{# The typed change events of a bronze table, one row each. #}
{% macro change_events(bronze, table=none, only='') -%}
{%- if not table -%}
    {%- if execute -%}{%- do cdc_lakehouse._check_change_table(model.name, model.config.meta) -%}{%- endif -%}
    {%- set table = cdc_lakehouse.change_table(this) -%}
{%- endif -%}
{%- set key_columns, sent = table['key_columns'] or [table['key']], table['source_names'].values() | sum(start=[]) -%}
{%- set passed = [
    'event_id', 'topic', 'kafka_partition', 'kafka_offset', 'op', 'source_epoch', 'source_position', 'source_lsn',
    'topic_generation', 'topic_partition', 'changed_at', 'ingested_at', 'ingest_batch', 'ingest_date', 'is_deleted',
    'fields', '__cdc_source_table'] -%}
{%- set placeholder = var('cdc_lakehouse_unavailable_value', '__debezium_unavailable_value') -%}
{%- set text = "'" ~ placeholder | replace('\\', '\\\\') | replace("'", "\\'") ~ "'" -%}
{%- set base64, digits = 'base64(cast(' ~ text ~ ' as binary))', local_md5(placeholder) -%}
{%- set uuid = [digits[:8], digits[8:12], '3' ~ digits[13:16], '89ab'[digits[16] | int(base=16) % 4] ~ digits[17:20],
    digits[20:]] | join('-') -%}
{%- set bytes = [] -%}
{%- for byte in placeholder.encode() -%}{%- do bytes.append((byte + 128) % 256 - 128) -%}{%- endfor -%}
with
{#- No text of an event has the mark of its long numbers: it is a digest of all of it. #}
events as (
    select
        *,
        {{ cdc_lakehouse.topic_partition() }} as topic_partition,
        {{ cdc_lakehouse._exact_numbers('key') | indent(8) }} as exact_key,
        {{ cdc_lakehouse._exact_numbers('value', 'md5(value)') | indent(8) }} as marked_value
    from {{ bronze }}
    {{ only | indent(4) }}
    where op <> 't'
),

{#- The row is the value itself in the flattened form, `after` or (of a delete) `before` in the envelope; either
    may sit in a `payload` beside its `schema`. Parsed by a generator, here and below: of a function Spark would
    parse the text once for every use of a field. #}
marked_rows as (
    select
        events.*,
        case
            when flat_op is not null then marked_value
            when payload is null or outer_schema is null then if(op = 'd', before_row, after_row)
            when get_json_object(payload, '$.__op') is not null then payload
            else get_json_object(payload, if(op = 'd', '$.before', '$.after'))
        end as marked_row
    from events
    lateral view inline(array(from_json(
        marked_value, '__op string, before string, after string, schema string, payload string'
    ))) outside as flat_op, before_row, after_row, outer_schema, payload
),

{#- Each value as its text, also those within JSON's objects and arrays, and the marks gone. #}
row_texts as (
    select
        *,
        if(marked_value <=> value, marked_row, regexp_replace(
            to_json(from_json(marked_row, 'map<string, string>')), concat('(\\\\")?', md5(value), '(\\\\")?'), ''
        )) as row_text
    from marked_rows
),

{#- `row_image` has of each column the newest name that the event has: its value may be null. #}
texts as (
    select
        row_texts.*,
        source_ts as changed_at, source_table as __cdc_source_table,
        {#- the unwrap transform writes a text, the envelope has only the operation -#}
        coalesce(op = 'd' or lower(__deleted) = 'true', false) as is_deleted,
        json_object_keys(row_text) as fields,
        struct(
            {%- for column, names in table['source_names'].items() %}
            {% for name in names[:-1] %}if(array_contains(fields, '{{ name }}'), sent_{{ sent.index(name) }}, {% endfor -%}
            sent_{{ sent.index(names[-1]) }}{{ ')' * (names | length - 1) }} as `{{ column }}`{{ ',' if not loop.last }}
            {%- endfor %}
        ) as row_image
    from row_texts
    lateral view inline(array(from_json(
        coalesce(nullif(row_text, ''), '{}'), '__deleted string, `{{ sent | join('` string, `') }}` string'
    ))) opened_row as __deleted{% for _ in sent %}, sent_{{ loop.index0 }}{% endfor %}
),

{#- `live` is the row, null of a delete, and `unsent` what Debezium sends for a value that the write-ahead log
    lacks (TOAST): the placeholder as it is; in base64, of a bytea; as the one element of an array of texts, bytea
    or uuid, of which it is the UUID of version 3 without a namespace; as an entry of an hstore; and its bytes as
    the elements of an array of integers or dates. Short names: a catalogue limits a view's text. #}
images as (
    select
        *,
        case when not is_deleted then row_image end as live,
        array(
            {{ text }}, {{ base64 }}, to_json(array({{ text }})), to_json(array({{ base64 }})),
            '["{{ uuid }}"]', to_json(map({{ text }}, {{ text }})), '[{{ bytes | join(',') }}]'
        ) as unsent
    from texts
),

typed as (
    select
        {%- set conditions = {} %}
        {%- for column in table['unchanged'] %}
        {%- do conditions.update({column: 'array_contains(unsent, live.`%s`)' % column}) %}
        {%- endfor %}
        {{ passed | join(', ') }}, {{ cdc_lakehouse.columns_where(conditions) | indent(8) }} as unavailable_columns, row_image,
        {%- for column, type in table['columns'].items() %}
        {%- if column == table['key'] %}
        {{ cdc_lakehouse.key_value(table) | indent(8) }}
        {%- else %}
        {%- set value = cdc_lakehouse._typed('live.`%s`' % column, type, table['source_names'][column]) %}
        {{ 'if(array_contains(unsent, live.`%s`), null, %s)' % (column, value)
            if column in table['unchanged'] + table['full'] else value }}
        {%- endif %} as `{{ column }}`,
        {%- endfor %}
        nullif(concat_ws('; ',
            {%- for column in key_columns %}
            {%- set text = cdc_lakehouse.key_value(table, column=column, type='string') | indent(12) %}
            case
                when {{ text }} is null then concat(
                    'no {{ column }}, which is the key',
                    if(row_image.`{{ column }}` is null, '', ': a made-up value, as Kafka\'s key lacks it')
                )
                when {{ cdc_lakehouse.key_value(table, column=column) | indent(12) }} is null
                    then concat('{{ column }}: \'', left({{ text }}, 60), '\' is no {{ table['columns'][column] }}')
            end
            {{- ',' if not loop.last }}
            {%- endfor %}
        ), '') as rejection
    from images
),

checked as (
    select
        {{ passed | join(', ') }}, unavailable_columns, `{{ table['columns'] | join('`, `') }}`,
        {%- set conditions = {} %}
        {%- for column in table['columns'] if column not in [table['key']] + key_columns + table['unchanged'] %}
        {%- do conditions.update({column: '`%s` is null and row_image.`%s` is not null' % (column, column)}) %}
        {%- endfor %}
        case when not is_deleted then {{ cdc_lakehouse.columns_where(conditions) | indent(8) }} end as untyped_columns,
        rejection
    from typed
)

select * from checked
{%- endmacro %}
