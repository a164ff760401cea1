{#
    Stop at a setting of dbt's that these materializations do not support: it would be ignored
    without a word.
#}
{% macro stop_at_setting() -%}
    {%- set schema_changes = ['ignore', 'append_new_columns', 'fail'] -%}
    {%- set where = "model '" ~ model.name ~ "': " -%}
    {%- for setting in [
        'clustered_by', 'buckets', 'incremental_strategy', 'incremental_predicates',
        'predicates', 'merge_update_columns', 'merge_exclude_columns', 'batch_size'
    ] if config.get(setting) -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting '" ~ setting ~ "' is not supported by the materialization "
            ~ config.get('materialized')
        ) }}
    {%- endfor -%}
    {%- if config.get('file_format') != 'hudi' -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'file_format' is '" ~ config.get('file_format')
            ~ "'; the materialization " ~ config.get('materialized') ~ ' writes hudi'
        ) }}
    {%- endif -%}
    {%- if config.get('unique_key') is not string -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'unique_key' is " ~ config.get('unique_key')
            ~ '; it is the name of one column'
        ) }}
    {%- endif -%}
    {%- if (config.get('persist_docs') or {}).values() | select | list -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'persist_docs' is not supported: Hudi makes a commit of each"
            ~ ' column\'s comment'
        ) }}
    {%- endif -%}
    {%- if config.get('on_schema_change', 'ignore') not in schema_changes -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'on_schema_change' is '" ~ config.get('on_schema_change')
            ~ "'; supported: " ~ schema_changes | join(', ')
        ) }}
    {%- endif -%}
{%- endmacro %}
