{#
    The relation of the rows that deletes ended, with the values that they had by then: what
    a row lacked because it began with a key change itself is in the row before it.

    Runs statements.
#}
{% macro former_rows(table, filled) -%}
    {%- set prefix = this.identifier ~ '__former_' -%}
    {%- set at = namespace(step=0, is_done=false) -%}
    {%- do run_query(create_temporary_view(prefix ~ '0', former_values(table, filled))) -%}
    {#- a chain may pass a key more than once; each step doubles how far back it looks -#}
    {%- for step in range(1, 20) if not at.is_done -%}
        {%- set former = prefix ~ at.step -%}
        {%- set open = run_query(
            'select 1 from ' ~ former ~ ' where former_life_start is not null limit 1'
        ) -%}
        {%- if open.rows -%}
            {%- do create_scratch_view(prefix ~ step, handed_over_values(table, former)) -%}
            {%- set at.step = step -%}
        {%- else -%}
            {%- set at.is_done = true -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(prefix ~ at.step) }}
{%- endmacro %}
