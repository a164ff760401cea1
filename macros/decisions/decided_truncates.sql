{#
    The points (see _points) of the truncates of this model's bronze tables that it is to `apply` or
    to `ignore`: as it has recorded, and of those that arrive as the variable
    `cdc_lakehouse_truncates` says. Stop where that names two, or says otherwise than before:
    rows that were deleted cannot be had back, nor keys deleted that no event brings.
#}
{% macro decided_truncates(decision) -%}
    {%- set before = cdc_lakehouse.recorded_truncates(model) -%}
    {%- set known = before.keys() | list -%}
    {%- for bronze_table in cdc_lakehouse._bronze_tables_of(model) -%}
        {%- do known.extend(cdc_lakehouse.run_bounds().get(bronze_table, {}).get('truncates', {})) -%}
    {%- endfor -%}
    {%- set named = cdc_lakehouse.decisions('truncates') -%}
    {%- set decided = [] -%}
    {%- for point in known | unique -%}
        {%- set plain = (none, point[1]) -%}
        {%- set same = known | unique | selectattr(1, 'equalto', point[1]) | reject('in', named) | list -%}
        {%- if plain in named and same | length > 1 -%}
            {{ exceptions.raise_compiler_error(
                "variable 'cdc_lakehouse_truncates' names position " ~ point[1] ~ ', and there are '
                ~ same | map('join', '@') | join(' and ') ~ ': name each with its epoch'
            ) }}
        {%- endif -%}
        {%- set said = named.get(point, named.get(plain, before.get(point))) -%}
        {%- if before.get(point, said) != said and load_relation(this) and not should_full_refresh() -%}
            {{ exceptions.raise_compiler_error(
                this ~ ' was built with the TRUNCATE at ' ~ point | join('@') ~ ': ' ~ before[point]
                ~ "; variable 'cdc_lakehouse_truncates' says " ~ said
                ~ ': dbt build --full-refresh -s ' ~ model.name ~ '+'
            ) }}
        {%- endif -%}
        {%- if said == decision -%}{%- do decided.append(point) -%}{%- endif -%}
    {%- endfor -%}
    {{ return(decided | sort) }}
{%- endmacro %}
