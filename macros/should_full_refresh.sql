{#
    Never: a full refresh overwrites the table in one commit (see spark__get_merge_sql), so
    that a reader sees the old rows or the new ones. dbt would drop the table and create it.

    Overrides dbt's macro of this name (dbt-core 1.11, materializations/configs.sql).
#}
{% macro should_full_refresh() -%}
    {{ return(false) }}
{%- endmacro %}
