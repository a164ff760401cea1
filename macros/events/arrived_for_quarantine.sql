{# True for the events of a staging model that the quarantine has not looked at. #}
{% macro arrived_for_quarantine(events) -%}
    {%- set bronze = change_table_of(events)['bronze'] -%}
    {%- if reads_increment() -%}
        {{ arrived_in_this_run(bronze) }}
    {%- else -%}
        {{ arrived_until_this_run(bronze) }}
    {%- endif -%}
{%- endmacro %}
