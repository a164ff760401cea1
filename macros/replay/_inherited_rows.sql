{#
    The rows of the first relation in `rows`, with the values that they lack from the rows of
    their former keys in the others, nearest first (see replayed_rows).
#}
{% macro _inherited_rows(table, rows) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set aliases = [] -%}
{%- for _ in rows -%}{%- do aliases.append('row_' ~ loop.index0) -%}{%- endfor -%}
{%- set known = {} -%}
{%- for column in table['carried'] -%}
    {%- set values -%}
    coalesce(
        {%- for row in aliases %}
        case
            when
                {{ row }}.{{ key }} is not null
                and not {{ cdc_lakehouse.is_unknown(column, row ~ '.carried_columns') | indent(16) }}
                then named_struct('value', {{ row }}.`{{ column }}`)
        end,
        {%- endfor %}
        null
    )
    {%- endset -%}
    {%- do known.update({column: values}) -%}
{%- endfor -%}
select
    {%- for column in table['columns'] %}
    {%- if column in known %}
    {{ known[column] | indent(4) }}.value as `{{ column }}`,
    {%- else %}
    row_0.`{{ column }}`,
    {%- endif %}
    {%- endfor %}
    {%- for column in cdc_lakehouse.position_columns() if column != 'ingest_batch' %}
    row_0.{{ column }},
    {%- endfor %}
    greatest({{ aliases | join('.ingest_batch, ') }}.ingest_batch, null) as ingest_batch,
    transform(
        row_0.carried_columns,
        entry -> named_struct(
            'column_name', entry.column_name,
            'is_known', case entry.column_name
                {%- for column, values in known.items() %}
                when '{{ column }}' then {{ values | indent(16) }} is not null
                {%- endfor %}
            end,
            'place', entry.place
        )
    ) as carried_columns
from {{ rows[0] }} as row_0
{%- for relation in rows[1:] %}
left join {{ relation }} as {{ aliases[loop.index] }}
    on row_0.{{ key }} = {{ aliases[loop.index] }}.{{ key }}
{%- endfor %}
{%- endmacro %}
