{# The elements of an array in the rows of a silver table, `parents`, one row each. #}
{% macro child_rows(parents, array, elements, id, key, parent_columns=[], computed={}) -%}
{%- set is_increment = cdc_lakehouse.reads_increment() -%}
{%- set columns = (key + parent_columns + elements.keys() | list) | unique | list + computed.keys() | list -%}
{%- set position = cdc_lakehouse.position_columns() | reject('in', ['is_deleted', 'untyped_columns']) | list -%}
with
parents as (
    select * from {{ parents }}
    {%- if is_increment %}
    {#- rand(), so that Spark reads the parents once for both uses, and not twice #}
    where {{ cdc_lakehouse.arrived_in_this_run(parents.identifier) }} and rand() >= 0
    {%- endif %}
),

present as (
    select
        `{{ columns | reject('in', computed) | join('`, `') }}`,
        {%- for column, expression in computed.items() %}
        {{ expression }} as `{{ column }}`,
        {%- endfor %}
        {{ position | join(', ') }}, false as is_deleted, __cdc_number
    from (
        select
            {%- for column in columns | reject('in', computed) %}
            {{ 'exploded.__cdc_element' if column in elements else 'parents' }}.`{{ column }}`,
            {%- endfor %}
            parents.{{ position | join(', parents.') }}, exploded.__cdc_number
        from parents
        lateral view posexplode(from_json(parents.`{{ array }}`, 'array<struct<
            {%- for field, type in elements.items() %}`{{ field }}`: {{ type }}{{ ', ' if not loop.last }}{% endfor -%}
        >>')) exploded as __cdc_number, __cdc_element
        where not parents.is_deleted
    )
),

candidates as (
    select * from present
    {%- if is_increment %}
    union all
    select
        {%- for column in columns %} {{ 'held.' if column in key else 'null as ' }}`{{ column }}`,{% endfor %}
        parents.{{ position | join(', parents.') }}, true as is_deleted, null as __cdc_number
    from {{ this }} as held
    inner join parents on held.`{{ key[0] }}` = parents.`{{ key[0] }}`
    where not held.is_deleted
    {%- endif %}
),

{# The elements of a key by their place among them; what was held for it and has no such place any more is gone. -#}
placed as (
    select
        *, count_if(not is_deleted) over (partition by `{{ key | join('`, `') }}`) as __cdc_present,
        row_number() over (partition by `{{ key | join('`, `') }}` order by is_deleted, __cdc_number) as __cdc_place
    from candidates
)

select
    concat_ws('#', concat_ws('-', `{{ key | join('`, `') }}`), nullif(__cdc_place - if(is_deleted, __cdc_present, 0), 1)) as `{{ id }}`,
    `{{ columns | join('`, `') }}`, op, is_deleted, {{ position[1:] | join(', ') }},
    cast(array() as {{ cdc_lakehouse.carried_type() }}) as carried_columns
from placed
where not is_deleted or __cdc_place > 2 * __cdc_present
{%- endmacro %}
