{# True for the rows with `low < ingest_batch <= high`; bronze is partitioned by a batch's first eight digits. #}
{% macro _arrived_between(low, high, is_bronze=true) -%}
    ingest_batch > {{ low }} and ingest_batch <= {{ high }}
    {%- for sign, batch in [('>=', low), ('<=', high)] if is_bronze %}
    {%- set digits = '%017d' % batch %}
    and ingest_date {{ sign }} '{{ digits[:4] }}-{{ digits[4:6] }}-{{ digits[6:8] }}'
    {%- endfor %}
{%- endmacro %}
