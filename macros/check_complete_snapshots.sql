{#
    Stop where the variable `complete_snapshots` names what is no snapshot: every older row
    would be marked as deleted.
#}
{% macro check_complete_snapshots() -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- set sources = bronze_sources() | map(attribute='name') | list -%}
        {%- for bronze_table in var('complete_snapshots', {}) -%}
            {%- if bronze_table not in sources -%}
                {{ exceptions.raise_compiler_error(
                    "variable 'complete_snapshots' names '" ~ bronze_table
                    ~ "', which is no bronze table; known: " ~ sources | join(', ')
                ) }}
            {%- endif -%}
            {%- set lsns = complete_snapshots(bronze_table) -%}
            {%- set found = [] -%}
            {%- for row in run_query(
                'select distinct source_lsn from ' ~ bronze_relation(bronze_table)
                ~ " where op = 'r' and source_lsn in (" ~ lsns | join(', ') ~ ')'
                ~ ' and ingest_batch <= ' ~ run_bound(bronze_table)
            ) if lsns -%}
                {%- do found.append(row[0] | int) -%}
            {%- endfor -%}
            {%- for lsn in lsns if lsn not in found -%}
                {{ exceptions.raise_compiler_error(
                    "variable 'complete_snapshots' names LSN " ~ lsn ~ ' of bronze.'
                    ~ bronze_table ~ ', which holds no snapshot read with it'
                    ~ ' (docs/runbook.md, A lost replication slot)'
                ) }}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
