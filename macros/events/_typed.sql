{#
    A column's text as the type that the source has, null where it is none.

    Debezium sends a date as days since 1970, a timestamp as microseconds, or milliseconds
    where its column has three digits or fewer, an instant as ISO text in UTC, and all of
    them as ISO text with `time.precision.mode=isostring`. A number beyond what PostgreSQL
    can hold (4714 BC to 5874897, or 294246 of a timestamp) means infinity, or a time
    that 64 bits do not hold.

    `base64` is a number as Debezium sends it with `decimal.handling.mode=precise`: the unscaled
    number's bytes in base64, highest first, negative where the first bit is set; of a `numeric`
    without a scale, as `{"scale": …, "value": …}`. Null where it is none, or beyond 38 digits.
    The scale of the declared `decimal(p,s)` must be the source's.
#}
{% macro _typed(text, type) -%}
    {%- if type in ['string', 'json'] -%}
        {{ text }}
    {%- elif type == 'bpchar' -%}
        rtrim({{ text }})
    {%- elif type == 'date' -%}
        coalesce(
            case
                when try_cast({{ text }} as int) between -2440588 and 2145042905
                    then date_add(date'1970-01-01', try_cast({{ text }} as int))
            end,
            try_cast({{ text }} as date)
        )
    {%- elif type.startswith('timestamp') -%}
        {%- set is_coarse = modules.re.fullmatch('timestamp\\([0-3]\\)', type) -%}
        {%- set unit, per_millisecond = ('millis', 1) if is_coarse else ('micros', 1000) -%}
        coalesce(
            case
                when
                    try_cast({{ text }} as bigint) between {{ -210866803200000 * per_millisecond }}
                    and {{ 9223371331200000 * per_millisecond - 1 }}
                    then timestamp_{{ unit }}(try_cast({{ text }} as bigint))
            end,
            try_cast({{ text }} as timestamp)
        )
    {%- elif type.endswith(' base64') -%}
        {%- set decimal = type.removesuffix(' base64') -%}
        {%- set value = "coalesce(get_json_object(" ~ text ~ ", '$.value'), " ~ text ~ ")" -%}
        {%- set scale = decimal.split(',')[1].strip(' )') -%}
        {#- `transform` of one element names it; the bytes of a negative number are counted from
            255 down, so that 38 digits are enough -#}
        transform(
            array(nullif(hex(try_to_binary({{ value }}, 'base64')), '')),
            bytes -> aggregate(
                sequence(1, length(bytes) div 2),
                cast(0 as decimal(38, 0)),
                (number, place) -> cast(
                    number * 256
                    + cast(conv(substr(bytes, 2 * place - 1, 2), 16, 10) as int)
                    - if(bytes >= '8', 255, 0) as decimal(38, 0)
                ),
                number -> try_cast(
                    concat(
                        cast(number - if(bytes >= '8', 1, 0) as decimal(38, 0)),
                        'e',
                        -cast(coalesce(get_json_object({{ text }}, '$.scale'), '{{ scale }}') as int)
                    ) as {{ decimal }}
                )
            )
        )[0]
    {%- elif type == 'smallint' -%}
        {#- an int in the table: Hudi 1.2.0 cannot merge a smallint (ClassCastException) -#}
        cast(try_cast({{ text }} as smallint) as int)
    {%- else -%}
        try_cast({{ text }} as {{ type }})
    {%- endif -%}
{%- endmacro %}
