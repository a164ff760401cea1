{#
    True for the rows of bronze with `low < ingest_batch <= high`. Its partitions, by
    `ingest_date`, are the first eight digits of the batch.
#}
{% macro _arrived_between(low, high) -%}
    {%- set dates = [] -%}
    {%- for batch in [low, high] -%}
        {%- set digits = '%017d' % batch -%}
        {%- do dates.append(digits[:4] ~ '-' ~ digits[4:6] ~ '-' ~ digits[6:8]) -%}
    {%- endfor -%}
    ingest_batch > {{ low }} and ingest_batch <= {{ high }}
    and ingest_date >= '{{ dates[0] }}' and ingest_date <= '{{ dates[1] }}'
{%- endmacro %}
