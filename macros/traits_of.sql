{#
    What compared events hold, so that the fold leaves out what they do not need: a mapping of
    `reads` (snapshot reads), `unavailable` (values that an event did not bring) and
    `unsettled` (unclear events, or deletes and late ones, which a key may have waited for)
    and `late` (see is_late).

    Asked only while dbt runs the model; anything is possible otherwise.
#}
{% macro traits_of(compared) -%}
    {%- if not execute or flags.WHICH not in ['build', 'run', 'retry'] -%}
        {{ return({
            'reads': true, 'unavailable': true, 'unsettled': true, 'late': false
        }) }}
    {%- endif -%}
    {%- set counts = run_query(
        "select count_if(op = 'r'), count_if(size(unavailable_columns) > 0),"
        ~ " count_if(standing <> 'newer' or op = 'd'), count_if(" ~ is_late() ~ ')'
        ~ ' from (' ~ compared ~ ')'
    ).rows[0] -%}
    {{ return({
        'reads': counts[0] > 0,
        'unavailable': counts[1] > 0,
        'unsettled': counts[2] > 0,
        'late': counts[3] > 0,
    }) }}
{%- endmacro %}
