{#
    A number as Debezium sends it with `decimal.handling.mode=precise`: the unscaled number's
    bytes in base64, highest first, negative where the first bit is set; of a `numeric` without
    a scale, as `{"scale": …, "value": …}`. Null where it is none, or beyond 38 digits.

    Args: the text, and the declared `decimal(p,s)`, whose scale must be the source's.
#}
{% macro base64_decimal(text, type) -%}
    {%- set value = "coalesce(get_json_object(" ~ text ~ ", '$.value'), " ~ text ~ ")" -%}
    {%- set scale = type.split(',')[1].strip(' )') -%}
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
                ) as {{ type }}
            )
        )
    )[0]
{%- endmacro %}
