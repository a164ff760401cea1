{#
    Give the versions of a history that are to be written (`state`, see _settled_rows) the values of
    the columns that are no longer declared: these stay with the version that began there, whatever its
    number. `types` and `columns` then have them, too.
#}
{% macro _keep_removed_columns(table, state, types, columns) -%}
    {%- set stored = cdc_lakehouse.stored_columns(this) -%}
    {%- set removed = stored.keys() | reject('in', types) | list -%}
    {%- set began = ['`' ~ table['key'] ~ '`', 'from_epoch', 'from_position', 'valid_from'] -%}
    {%- set rows -%}
        (
            select versions.*
            {%- for column in removed %}, before.`{{ column }}`{% endfor %}
            from {{ state['rows'] }} as versions
            left join (
                select {{ began | join(', ') }}
                {%- for column in removed %}, max_by(`{{ column }}`, version_number) as `{{ column }}`{% endfor %}
                from {{ this }}
                group by {{ began | join(', ') }}
            ) as before
                on {% for each in began %}versions.{{ each }} <=> before.{{ each }}
                {{- ' and ' if not loop.last }}{% endfor %}
        )
    {%- endset -%}
    {%- for column in removed -%}
        {%- do types.update({column: stored[column]}) -%}
        {%- do columns.append(column) -%}
    {%- endfor -%}
    {%- if removed -%}{%- do state.update({'rows': rows}) -%}{%- endif -%}
{%- endmacro %}
