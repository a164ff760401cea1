{#
    Stop at a truncate that nobody has decided on: it has no rows, so that applying it is
    more than replaying a change, and leaving it out keeps rows that are gone.
#}
{% macro stop_at_truncate() -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- for lsn, decision in cdc_lakehouse.decisions('truncates').items() -%}
            {%- if decision not in ['apply', 'ignore'] -%}
                {{ exceptions.raise_compiler_error(
                    "variable 'cdc_lakehouse_truncates' says '" ~ decision ~ "' for LSN " ~ lsn
                    ~ "; it is apply or ignore"
                ) }}
            {%- endif -%}
        {%- endfor -%}
        {%- set decided = cdc_lakehouse.decisions('truncates').keys() | map('string') | list -%}
        {%- for bronze_table, bounds in cdc_lakehouse.run_bounds().items() -%}
            {%- for lsn in bounds['truncates'] if lsn not in decided -%}
                {{ exceptions.raise_compiler_error(
                    'bronze.' ~ bronze_table ~ ' holds a TRUNCATE at LSN ' ~ lsn
                    ~ ". Decide what to do about it: dbt build --vars '{cdc_lakehouse_truncates: {"
                    ~ lsn ~ ": apply}}' marks the table's older rows as deleted, ignore keeps"
                    ~ ' them (docs/runbook.md)'
                ) }}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
