{#
    What an increment of a silver table merges (see current_rows), in steps: the events
    that arrived, their standing to the stored rows, and the rows that have become newer.
#}
{% macro increment_rows(events, table) -%}
{%- set prefix = this.identifier ~ '__' -%}
{%- set arrived = in_steps(prefix ~ 'arrived', arrived_events(events, table)) -%}
{%- set compared = in_steps(prefix ~ 'compared', compared_events(arrived, table)) -%}
{%- set traits = traits_of(compared) -%}
{%- set heirs = heirs_of(events, table, compared) if traits['late'] else [] -%}
{{ newer_rows(compared, table, traits, heirs) }}
{%- endmacro %}
