{#
    Stop at a setting of dbt's that these materializations do not support, as it would be
    ignored without a word, and at a way to store a table that cannot work, or is another than
    that of the table that is there (`existing`): Hudi would go on in the old way, or write a key
    twice. A table of an earlier version has recorded nothing.
#}
{% macro _check_config(existing) -%}
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
    {%- set properties = config.get('tblproperties') or {} -%}
    {%- set index = properties.get('hoodie.index.type', '') | upper -%}
    {%- set partition = config.get('partition_by') -%}
    {%- if properties.get('type', 'cow') not in ['cow', 'mor'] -%}
        {{ exceptions.raise_compiler_error(
            where ~ "table property 'type' is '" ~ properties['type'] ~ "'; supported: cow, mor"
        ) }}
    {%- endif -%}
    {%- if partition and (
        config.get('materialized') != 'cdc_merge'
        or partition is not string
        or partition == config.get('unique_key')
    ) -%}
        {{ exceptions.raise_compiler_error(
            where ~ "setting 'partition_by' is " ~ partition ~ '; it is the name of one'
            ~ ' column, not the key, of a model of the materialization cdc_merge'
        ) }}
    {%- endif -%}
    {%- if partition and index not in ['', 'GLOBAL_SIMPLE'] -%}
        {{ exceptions.raise_compiler_error(
            where ~ "table property 'hoodie.index.type' is '" ~ index ~ "': with 'partition_by'"
            ~ ' only GLOBAL_SIMPLE finds a row whose partition has changed'
        ) }}
    {%- endif -%}
    {%- if index == 'BUCKET' and 'hoodie.bucket.index.num.buckets' not in properties -%}
        {{ exceptions.raise_compiler_error(
            where ~ "a bucket index needs the table property 'hoodie.bucket.index.num.buckets',"
            ~ ' which cannot be changed later'
        ) }}
    {%- endif -%}
    {%- set before = cdc_lakehouse.progress(existing).get('stored_as', 'cow') if existing -%}
    {%- set wanted = cdc_lakehouse._table_properties()['lakehouse.stored_as'] -%}
    {%- if existing and before != wanted -%}
        {{ exceptions.raise_compiler_error(
            existing ~ ' is stored as: ' ~ before ~ '; the model says: ' ~ wanted
            ~ '. Drop the table and build it again: dbt run-operation drop_table'
            ~ " --args '{table: " ~ existing.schema ~ '.' ~ existing.identifier ~ "}'"
            ~ ' (docs/storage.md)'
        ) }}
    {%- endif -%}
{%- endmacro %}
