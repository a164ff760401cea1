{# A column's text as the type that the source has, null where it is none. #}
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
                    - if(bytes >= '80', 255, 0) as decimal(38, 0)
                ),
                number -> try_cast(concat(
                    cast(number - if(bytes >= '80', 1, 0) as decimal(38, 0)), 'e',
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
