{#
    Relations of the keys whose rows began with values of the keys that late events are of: a
    late event may change what a key change handed over, to the new key and to those after.

    Runs statements, which read all of bronze; a list of relations. None, and nothing is read,
    where no stored row carries a value (REPLICA IDENTITY FULL: then an event brings all).
#}
{% macro heirs_of(events, table, compared) -%}
    {%- set carrying = run_query(
        'select 1 from ' ~ this ~ ' where size(carried_columns) > 0 limit 1'
    ) -%}
    {%- if not carrying.rows -%}{{ return([]) }}{%- endif -%}
    {%- set changes = key_changes(events, table) -%}
    {%- if changes is none -%}{{ return([]) }}{%- endif -%}
    {%- set late = this.identifier ~ '__late' -%}
    {%- do create_scratch_view(
        late,
        'select distinct `' ~ table['key'] ~ '` from (' ~ compared ~ ') where ' ~ is_late()
    ) -%}
    {{ return(linked_keys(changes, table, late, 'later_key')) }}
{%- endmacro %}
