{#
    The stored keys that inherit values from a version that these ended, `arrived` (a query) of
    keys that only went on and `replayed` (relations) of `keys` (relations) whose past may be
    another; and those that inherit from these keys, and so on. Scratch rows, none where there
    are none. Runs statements.
#}
{% macro _waiting_keys(table, arrived, replayed, keys) -%}
    {%- set key = '`' ~ table['key'] ~ '`' -%}
    {%- set ended = ['select to_epoch, to_position from (' ~ arrived ~ ') where fold_ended'] -%}
    {%- for relation in replayed -%}
        {%- do ended.append('select to_epoch, to_position from ' ~ relation) -%}
    {%- endfor -%}
    {%- set known = keys | list -%}
    {%- set found = [] -%}
    {%- set at = namespace(keys=keys, is_done=false) -%}
    {#- a bound, lest a build hangs -#}
    {%- for step in range(1, 100) if not at.is_done -%}
        {%- for relation in at.keys -%}
            {%- do ended.append(
                'select target.to_epoch, target.to_position from ' ~ this ~ ' as target left semi join '
                ~ relation ~ ' as past on target.' ~ key ~ ' = past.' ~ key
            ) -%}
        {%- endfor -%}
        {%- set query -%}
            select distinct target.{{ key }}
            from {{ this }} as target
            left semi join ({{ ended | join(' union all ') }}) as ended
                on
                    target.inherited.source_epoch = ended.to_epoch
                    and target.inherited.source_position = ended.to_position
            {%- for relation in known %}
            left anti join {{ relation }} as known_{{ loop.index }}
                on target.{{ key }} = known_{{ loop.index }}.{{ key }}
            {%- endfor %}
            where target.inherited is not null
        {%- endset -%}
        {%- if run_query(query ~ ' limit 1').rows -%}
            {%- set waiting = cdc_lakehouse.scratch_rows('waiting_' ~ step, query) -%}
            {%- do found.append('select ' ~ key ~ ' from ' ~ waiting) -%}
            {%- do known.append(waiting) -%}
            {%- set ended = [] -%}
            {%- set at.keys = [waiting] -%}
        {%- else -%}
            {%- set at.is_done = true -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return('(' ~ found | join(' union all ') ~ ')' if found) }}
{%- endmacro %}
