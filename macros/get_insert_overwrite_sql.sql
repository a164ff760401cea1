{#
    Overwrite a gold table in one commit, or leave it alone where no input has changed.

    Overrides dbt-spark's macro of this name (1.11.0, materializations/incremental/
    strategies.sql), which overwrites always.
#}
{% macro get_insert_overwrite_sql(source_relation, target_relation, existing_relation) -%}
    {%- if progress(target_relation).get('inputs') == inputs_state() -%}
        select 'no input has changed' as outcome
    {%- else -%}
        insert overwrite table {{ target_relation }}
        select {{ target_columns(source_relation, target_relation) | join(', ') }}
        from {{ source_relation }}
    {%- endif -%}
{%- endmacro %}
