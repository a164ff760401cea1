{#
    Relations of the keys that key changes link to those in the relation `keys`, one for each
    step, without `keys` itself. `side` says which are looked for: `former_key`, the keys
    that their rows had before, or `later_key`.

    Runs statements.
#}
{% macro linked_keys(changes, table, keys, side) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set other = 'later_key' if side == 'former_key' else 'former_key' -%}
    {%- set known = [keys] -%}
    {%- set at = namespace(is_done=false) -%}
    {#- a chain ends where the history does; a loop without a bound could hang a build -#}
    {%- for step in range(1, 100) if not at.is_done -%}
        {%- set query -%}
            select distinct changes.{{ side }} as {{ key }}
            from {{ changes }} as changes
            left semi join {{ known[-1] }} as last
                on changes.{{ other }} = last.{{ key }}
            {%- for relation in known %}
            left anti join {{ relation }} as known_{{ loop.index }}
                on changes.{{ side }} = known_{{ loop.index }}.{{ key }}
            {%- endfor %}
        {%- endset -%}
        {%- set next_keys = this.identifier ~ '__' ~ side ~ 's_' ~ step -%}
        {%- do create_scratch_view(next_keys, query) -%}
        {%- if run_query('select 1 from ' ~ next_keys ~ ' limit 1').rows -%}
            {%- do known.append(next_keys) -%}
        {%- else -%}
            {%- set at.is_done = true -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(known[1:]) }}
{%- endmacro %}
