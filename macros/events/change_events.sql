{#
    The typed change events of a bronze table, one row each: `rejection` says why an event has
    no key, `fields` which fields it has, `unavailable_columns` which values it did not bring,
    `untyped_columns` which values their types cannot hold: these are null. Of a delete only the
    key is typed: the rest is the old row, or made-up defaults. Columns are read as text first,
    so that a value of the wrong type is seen.
#}
{% macro change_events(bronze, table=none, only='') -%}
{%- if not table -%}
    {%- if execute -%}{%- do cdc_lakehouse._check_change_table(model.name, model.config.meta) -%}{%- endif -%}
    {%- set table = cdc_lakehouse.change_table(this) -%}
{%- endif -%}
{%- set key = table['key'] -%}
{%- set key_columns = table['key_columns'] or [key] -%}
{%- set carried_names = table['carried'] -%}
{#- each name that a column has or had at the source, with its place in the parsed row -#}
{%- set places = {} -%}
{%- set renamed = [] -%}
{%- for column, names in table['source_names'].items() -%}
    {%- do renamed.append([column, names]) if names | length > 1 -%}
    {%- for name in names -%}
        {%- do places.update({name: column if names | length == 1 else '__cdc_' ~ loop.index ~ '_' ~ column}) -%}
    {%- endfor -%}
{%- endfor -%}
{%- set parsed = 'sent_row' if renamed else 'row_image' -%}
{%- set passed = [
    'event_id', 'topic', 'kafka_partition', 'kafka_offset', 'op', 'source_epoch',
    'source_position', 'source_lsn', 'topic_generation', 'topic_partition', 'changed_at',
    'ingested_at', 'ingest_batch', 'ingest_date', 'is_deleted', 'fields', '__cdc_source_table'
] -%}
{%- set numbers = cdc_lakehouse._number_patterns() -%}
with
events as (
    select
        bronze.*,
        {{ cdc_lakehouse._exact_key() }} as fold_key,
        if(value rlike '{{ numbers['short_numbers'] }}', null, md5(value)) as number_mark
    from {{ cdc_lakehouse.bronze_events(bronze) | indent(4) }} as bronze
    {{ only | indent(4) }}
    where bronze.op <> 't'
),

{#-
    Spark's JSON takes a number with a point through a double. A long one is made a string here,
    within marks that nothing else in the text can be.
#}
marked as (
    select
        *,
        if(number_mark is null, value, regexp_replace(
            value,
            '{{ numbers['up_to_long_number'] }}',
            concat('$1"', number_mark, '$2', number_mark, '"')
        )) as marked_value
    from events
),

{#
    The row is the value itself in the flattened form, `after` or (of a delete) `before` in the
    envelope; either may sit in a `payload` beside its `schema`. Parsed by a generator, here and
    below: of a function Spark would parse the text once for every use of a field.
#}
marked_rows as (
    select
        marked.*,
        case
            when flat_op is not null then marked_value
            when payload is null or outer_schema is null
                then case when op = 'd' then before_row else after_row end
            when get_json_object(payload, '$.__op') is not null then payload
            when op = 'd' then get_json_object(payload, '$.before')
            else get_json_object(payload, '$.after')
        end as marked_row
    from marked
    lateral view inline(array(from_json(
        marked_value, '__op string, before string, after string, schema string, payload string'
    ))) outside as flat_op, before_row, after_row, outer_schema, payload
),

{#- Each value as its text, also those within JSON's objects and arrays, and the marks gone. #}
row_texts as (
    select
        *,
        if(number_mark is null, marked_row, replace(replace(replace(
            to_json(from_json(marked_row, 'map<string, string>')),
            concat('\\"', number_mark), ''), concat(number_mark, '\\"'), ''), number_mark, ''
        )) as row_text
    from marked_rows
),

texts as (
    select
        row_texts.*,
        source_ts as changed_at, source_table as __cdc_source_table,
        {#- the unwrap transform writes a text, the envelope has only the operation -#}
        coalesce(op = 'd' or lower({{ parsed }}.__deleted) = 'true', false) as is_deleted,
        {%- if renamed %}
        sent_fields as fields,
        {#- the newest name that the event has: its value may be null #}
        struct(
            sent_row.*
            {%- for column, names in renamed %},
            {%- for name in names[:-1] %}
            if(array_contains(sent_fields, '{{ name }}'), sent_row.`{{ places[name] }}`,
            {%- endfor %}
            sent_row.`{{ places[names[-1]] }}`
            {{- ')' * (names | length - 1) }} as `{{ column }}`
            {%- endfor %}
        ) as row_image
        {%- else %}
        json_object_keys(row_text) as fields,
        row_image
        {%- endif %}
    from row_texts
    lateral view explode(array(cast(
        from_json(
            coalesce(nullif(row_text, ''), '{}'),
            '__deleted string
            {%- for name in places %}, `{{ name }}` string{% endfor %}'
        ) as struct<
            __deleted: string
            {%- for place in places.values() %}, `{{ place }}`: string{% endfor %}
        >
    ))) opened_row as {{ parsed }}
    {%- if renamed %}
    lateral view explode(array(json_object_keys(row_text))) opened_names as sent_fields
    {%- endif %}
),

{#- `unsent` is what stands for a value that did not come, and `live` the row, null of a delete:
    short names, because each column has them, and a catalogue limits a view's text. #}
images as (
    select
        *,
        {{ cdc_lakehouse._unavailable_texts() | indent(8) }} as unsent,
        if(is_deleted, null, row_image) as live
    from texts
),

sent as (
    select
        *,
        {%- set conditions = {} %}
        {%- for column in carried_names %}
        {%- do conditions.update({column: 'array_contains(unsent, live.`%s`)' % column}) %}
        {%- endfor %}
        {{ cdc_lakehouse.columns_where(conditions) | indent(8) }} as unavailable_columns
    from images
),

typed as (
    select
        {{ passed | join(', ') }}, row_image, unavailable_columns,
        {%- for column in table['columns'] %}
        {%- set type = table['columns'][column] %}
        {%- if column == key %}
        {{ cdc_lakehouse.key_value(table) | indent(8) }}
        {%- else %}
        {%- set value = cdc_lakehouse._typed(
            'live.`' ~ column ~ '`', type, cdc_lakehouse._has_number(table, column)
        ) %}
        {{ 'if(array_contains(unsent, live.`%s`), null, %s)' % (column, value)
            if column in carried_names + table['full'] else value }}
        {%- endif %} as `{{ column }}`,
        {%- endfor %}
        nullif(concat_ws('; ',
            {%- for column in key_columns %}
            {%- set text = cdc_lakehouse._key_text(table, column) %}
            case
                when {{ text }} is null then concat(
                    'no {{ column }}, which is the key',
                    if(row_image.`{{ column }}` is null, '', ': a made-up value, as Kafka\'s key lacks it')
                )
                when {{ cdc_lakehouse._key_part(table, column) }} is null
                    then concat('{{ column }}: \'', left({{ text }}, 60), '\' is no {{ table['columns'][column] }}')
            end
            {{- ',' if not loop.last }}
            {%- endfor %}
        ), '') as rejection
    from sent
),

checked as (
    select
        {{ passed | join(', ') }}, unavailable_columns,
        `{{ table['columns'] | join('`, `') }}`,
        case
            {%- set conditions = {} %}
            {%- for column in table['columns'] if column not in [key] + key_columns + carried_names %}
            {%- do conditions.update(
                {column: '`%s` is null and row_image.`%s` is not null' % (column, column)}
            ) %}
            {%- endfor %}
            when not is_deleted then {{ cdc_lakehouse.columns_where(conditions) | indent(12) }}
        end as untyped_columns,
        rejection
    from typed
)

select * from checked
{%- endmacro %}
