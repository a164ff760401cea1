{#
    A column's text as the type that the source has, null where it is none.

    Debezium sends a date as days since 1970, a timestamp as microseconds, an instant as
    ISO text in UTC, and all of them as ISO text with `time.precision.mode=isostring`.
#}
{% macro typed(text, type) -%}
    {%- if type in ['string', 'json'] -%}
        {{ text }}
    {%- elif type == 'bpchar' -%}
        rtrim({{ text }})
    {%- elif type == 'date' -%}
        coalesce(
            date_add(date'1970-01-01', try_cast({{ text }} as int)),
            try_cast({{ text }} as date)
        )
    {%- elif type in ['timestamp', 'timestamptz'] -%}
        coalesce(
            timestamp_micros(try_cast({{ text }} as bigint)),
            try_cast({{ text }} as timestamp)
        )
    {%- else -%}
        try_cast({{ text }} as {{ type }})
    {%- endif -%}
{%- endmacro %}
