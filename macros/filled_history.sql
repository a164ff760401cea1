{# Every version of some keys, with the values known at it (see settled_rows). #}
{% macro filled_history(events, table, keys) -%}
with

history as (

    {{ change_history(events, table, keys) | indent(4) }}

),

{{ newest_versions('history', table) }}

select
    *,
    lag(life_start) over (
        partition by `{{ table['key'] }}` order by {{ position_order() }}
    ) as former_life_start
    {%- for column in table['columns'] if column != table['key'] %},
    lag(`known_{{ column }}`) over (
        partition by `{{ table['key'] }}` order by {{ position_order() }}
    ) as `former_{{ column }}`
    {%- endfor %}
from history_filled
{%- endmacro %}
