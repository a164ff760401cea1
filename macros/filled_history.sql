{# Every version in some histories, with the values known at it (see settled_rows). #}
{% macro filled_history(table, histories) -%}
with

history as (

    {% for history in histories -%}
    select * from {{ history }}
    {{ 'union all' if not loop.last }}
    {% endfor %}

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
