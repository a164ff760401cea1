{#
    Stop where the variable `cdc_lakehouse_complete_snapshots` names an LSN at which bronze holds
    no snapshot: every older row would be marked as deleted.
#}
{% macro check_complete_snapshots() -%}
    {%- if execute and flags.WHICH in ['build', 'run', 'retry'] -%}
        {%- set named = cdc_lakehouse.decisions('complete_snapshots') -%}
        {%- set variable = "variable 'cdc_lakehouse_complete_snapshots' " -%}
        {%- if named is not mapping -%}
            {{ exceptions.raise_compiler_error(
                variable ~ 'is ' ~ named ~ '; it maps a bronze table to the LSN of its'
                ~ ' snapshot, or to a list of them'
            ) }}
        {%- endif -%}
        {%- set sources = cdc_lakehouse.bronze_sources() | map(attribute='name') | list -%}
        {%- for bronze_table, given in named.items() -%}
            {%- if bronze_table not in sources -%}
                {{ exceptions.raise_compiler_error(
                    variable ~ "names '" ~ bronze_table ~ "', which is no bronze table;"
                    ~ ' known: ' ~ sources | join(', ')
                ) }}
            {%- endif -%}
            {%- set listed = [given] if given is string or given is not iterable else given -%}
            {%- for lsn in listed if not modules.re.fullmatch('[0-9]+', lsn | string) -%}
                {{ exceptions.raise_compiler_error(
                    variable ~ "gives '" ~ lsn ~ "' for " ~ bronze_table
                    ~ '; an LSN is a whole number'
                ) }}
            {%- endfor -%}
            {%- set lsns = cdc_lakehouse.complete_snapshots(bronze_table) -%}
            {%- if lsns and bronze_table in cdc_lakehouse.run_bounds() -%}
                {%- set found = [] -%}
                {%- for row in run_query(
                    'select distinct source_lsn from ' ~ cdc_lakehouse.bronze_relation(bronze_table)
                    ~ " where op = 'r' and source_lsn in (" ~ lsns | join(', ') ~ ')'
                    ~ ' and ingest_batch <= ' ~ cdc_lakehouse.run_bounds()[bronze_table]['upper']
                ) -%}
                    {%- do found.append(row[0] | int) -%}
                {%- endfor -%}
                {%- for lsn in lsns if lsn not in found -%}
                    {{ exceptions.raise_compiler_error(
                        variable ~ 'names LSN ' ~ lsn ~ ' of bronze.' ~ bronze_table
                        ~ ', which holds no snapshot read with it'
                        ~ ' (docs/runbook.md, A lost replication slot)'
                    ) }}
                {%- endfor -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
