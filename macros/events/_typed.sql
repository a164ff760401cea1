{#
    A column's text as the type that the source has, null where it is none.

    Debezium sends a date as days since 1970, a timestamp as microseconds, or milliseconds up to three digits,
    an instant as ISO text, and all of them as ISO text with `time.precision.mode=isostring`. A number beyond
    what PostgreSQL can hold (4714 BC to 5874897, or 294246 of a timestamp) means infinity. Only ISO text has a
    hyphen behind its first character; a cast that fails costs Spark an exception, so that none is tried in vain.

    `hashed`: SHA-256 in hexadecimal digits, for a column that analysts may compare and not read. Trailing blanks
    of a bpchar are trimmed first, so that equal values have equal hashes.

    `base64`: with `decimal.handling.mode=precise` a number comes as its unscaled bytes, highest first, negative
    where the first bit is set; a `numeric` without a scale as `{"scale": …, "value": …}`. A JSON number
    (`decimal.format=NUMERIC`) is none of them, though its digits may be base64: it stands behind one of the
    column's `names` in the event, without `has_row` in Kafka's key. A name with a quote before it and a colon
    behind it is in no string.
#}
{% macro _typed(text, type, names, has_row=true) -%}
    {%- if type in ['string', 'json'] -%}
        {{ text }}
    {%- elif type == 'bpchar' -%}
        rtrim({{ text }})
    {%- elif type.endswith(' hashed') -%}
        sha2({{ 'rtrim(%s)' % text if type == 'bpchar hashed' else text }}, 256)
    {%- elif type == 'date' -%}
        case
            when locate('-', {{ text }}, 2) > 0 then try_cast(trim(trailing 'Z' from {{ text }}) as date)
            when try_cast({{ text }} as int) between -2440588 and 2145042905
                then date_add(date'1970-01-01', try_cast({{ text }} as int))
        end
    {%- elif type.startswith('timestamp') -%}
        {%- set is_coarse = modules.re.fullmatch('timestamp\\([0-3]\\)', type) -%}
        {%- set unit, per_millisecond = ('millis', 1) if is_coarse else ('micros', 1000) -%}
        case
            when locate('-', {{ text }}, 2) > 0 then try_cast({{ text }} as timestamp)
            when try_cast({{ text }} as bigint) between {{ -210866803200000 * per_millisecond }}
                and {{ 9223371331200000 * per_millisecond - 1 }}
                then timestamp_{{ unit }}(try_cast({{ text }} as bigint))
        end
    {%- elif type.endswith(' base64') -%}
        {%- set decimal = type.removesuffix(' base64') -%}
        {%- set scale = decimal.split(',')[1].strip(' )') -%}
        {#- `transform` of one element names it; the bytes of a negative number are counted from 255 down, so
            that 38 digits are enough -#}
        transform(
            array(if(
                {{ text }} rlike '^[0-9]+$' and {{ "concat_ws(' ', value, key)" if has_row else 'key' }}
                    rlike '"(\\Q{{ names | join('\\\\E|\\\\Q') }}\\E)"\\s*:\\s*[0-9]',
                null,
                nullif(hex(try_to_binary(coalesce(get_json_object({{ text }}, '$.value'), {{ text }}), 'base64')), '')
            )),
            bytes -> aggregate(
                sequence(1, length(bytes) div 2),
                cast(0 as decimal(38, 0)),
                (number, place) -> cast(
                    number * 256 + cast(conv(substr(bytes, 2 * place - 1, 2), 16, 10) as int)
                    - if(bytes >= '8', 255, 0) as decimal(38, 0)
                ),
                number -> try_cast(concat(
                    cast(number - if(bytes >= '8', 1, 0) as decimal(38, 0)), 'e',
                    -cast(coalesce(get_json_object({{ text }}, '$.scale'), '{{ scale }}') as int)
                ) as {{ decimal }})
            )
        )[0]
    {%- elif type == 'smallint' -%}
        {#- an int in the table: Hudi 1.2.0 cannot merge a smallint (ClassCastException) -#}
        cast(try_cast({{ text }} as smallint) as int)
    {%- else -%}
        try_cast({{ text }} as {{ type }})
    {%- endif -%}
{%- endmacro %}
