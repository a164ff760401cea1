{# Remove every version of a table but the newest, with the rows that it no longer has (docs/runbook.md). #}
{% macro remove_versions(table) -%}
    {%- do cdc_lakehouse.compact(table)
        if 'mor' in run_query('show tblproperties ' ~ table ~ " ('type')").columns[1].values() -%}
    {%- do run_query("call run_clean(table => '" ~ table ~ "', trigger_max_commits => 1,"
        ~ " clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)") -%}
    {{ log('removed the versions of ' ~ table ~ ' but the newest', info=true) }}
{%- endmacro %}
