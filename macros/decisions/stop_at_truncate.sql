{#
    Stop at a truncate that nobody has decided on: it has no rows, so that applying it is
    more than replaying a change, and leaving it out keeps rows that are gone.
#}
{% macro stop_at_truncate() -%}
    {%- for named, decision in cdc_lakehouse.decisions('truncates').items() -%}
        {%- if decision not in ['apply', 'ignore'] -%}
            {{ exceptions.raise_compiler_error(
                "variable 'cdc_lakehouse_truncates' says '" ~ decision ~ "' for position "
                ~ named ~ "; it is apply or ignore"
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {%- set decided = [] -%}
    {%- for named in cdc_lakehouse.decisions('truncates') -%}
        {%- do decided.append(cdc_lakehouse._position_text(named)) -%}
    {%- endfor -%}
    {%- for bronze_table, bounds in cdc_lakehouse.run_bounds().items() -%}
        {%- for position in bounds['truncates'] if position not in decided -%}
            {{ exceptions.raise_compiler_error(
                'bronze.' ~ bronze_table ~ ' holds a TRUNCATE at position ' ~ position
                ~ ". Decide what to do about it: dbt build --vars '{cdc_lakehouse_truncates: {\""
                ~ position ~ "\": apply}}' marks the table's older rows as deleted, ignore keeps"
                ~ ' them (docs/runbook.md)'
            ) }}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro %}
