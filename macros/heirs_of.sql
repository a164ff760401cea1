{#
    Relations of the keys whose rows began with values of the keys that late events are of: a
    late event may change what a key change handed over, to the new key and to those after.

    Runs statements, which read all of bronze; a list of relations. None, and nothing is read,
    where no stored row carries a value (REPLICA IDENTITY FULL: then an event brings all).
#}
{% macro heirs_of(events, table, compared) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set prefix = this.identifier ~ '__heirs_' -%}
    {%- set carrying = run_query(
        'select count(*) from ' ~ this ~ ' where size(carried_columns) > 0'
    ) -%}
    {%- if carrying.rows[0][0] == 0 -%}{{ return([]) }}{%- endif -%}
    {%- set known = [prefix ~ '0'] -%}
    {%- set at = namespace(is_done=false) -%}
    {%- do create_scratch_view(
        known[0],
        'select distinct ' ~ key ~ ' from (' ~ compared ~ ') where ' ~ is_late()
    ) -%}
    {%- for step in range(1, 100) if not at.is_done -%}
        {%- set deletes = prefix ~ 'deletes_' ~ step -%}
        {%- do create_scratch_view(deletes, deletes_of_keys(events, table, known[-1])) -%}
        {%- if run_query('select count(*) from ' ~ deletes).rows[0][0] == 0 -%}
            {%- set at.is_done = true -%}
        {%- else -%}
            {%- set heirs = prefix ~ step -%}
            {%- do create_scratch_view(heirs, later_keys(events, table, deletes, known)) -%}
            {%- if run_query('select count(*) from ' ~ heirs).rows[0][0] == 0 -%}
                {%- set at.is_done = true -%}
            {%- else -%}
                {%- do known.append(heirs) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(known[1:]) }}
{%- endmacro %}
