{#
    The rows of the first relation in `rows`, with the values that they lack from the rows of
    their former keys in the others, nearest first (see replayed_rows).
#}
{% macro inherited_rows(table, rows) -%}
{%- set key = '`' ~ table['key'] ~ '`' -%}
{%- set known = {} -%}
{%- for column in cdc_lakehouse.carried_names(table) -%}
    {%- set values -%}
    coalesce(
        {%- for relation in rows %}
        case
            when
                {{ relation }}.{{ key }} is not null
                and not {{ cdc_lakehouse.is_unknown(column, relation ~ '.carried_columns') | indent(16) }}
                then named_struct('value', {{ relation }}.`{{ column }}`)
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
    {{ rows[0] }}.`{{ column }}`,
    {%- endif %}
    {%- endfor %}
    {%- for column in cdc_lakehouse.position_columns() if column != 'ingest_batch' %}
    {{ rows[0] }}.{{ column }},
    {%- endfor %}
    greatest({{ rows | join('.ingest_batch, ') }}.ingest_batch, null) as ingest_batch,
    transform(
        {{ rows[0] }}.carried_columns,
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
from {{ rows[0] }}
{%- for relation in rows[1:] %}
left join {{ relation }}
    on {{ rows[0] }}.{{ key }} = {{ relation }}.{{ key }}
{%- endfor %}
{%- endmacro %}
