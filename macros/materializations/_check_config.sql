{# Stop at a setting that would be ignored without a word, or write a key twice, or is not the existing table's. #}
{% macro _check_config(existing, fold) -%}
    {%- set kind, format = 'the materialization ' ~ config.get('materialized'), config.get('file_format') -%}
    {%- set mode, properties = config.get('on_schema_change', 'ignore'), cdc_lakehouse.table_properties() -%}
    {%- set index, key = properties.get('hoodie.index.type', 'GLOBAL_SIMPLE') | upper, config.get('unique_key') -%}
    {%- set is_history = fold is not none and ' as history_id' in fold['query'] -%}
    {%- set of_rows = 'history_id' if is_history else (fold or {}).get('key', key) -%}
    {%- set partition, stored_as, stored = config.get('partition_by'), properties['lakehouse.stored_as'], cdc_lakehouse.stored_table(this) -%}
    {%- set before = stored['recorded'].get('stored_as', 'cow') if existing else stored_as -%}
    {%- set again = ". Drop the table and build it again: dbt run-operation drop_table --args '{table: "
        ~ this.schema ~ '.' ~ this.identifier ~ "}'" -%}
    {%- set errors = [
        (format != 'hudi', "setting 'file_format' is '" ~ format ~ "'; " ~ kind ~ ' writes hudi'),
        (key is not string, "setting 'unique_key' is " ~ key ~ '; it is the name of one column'),
        (key is string and key != of_rows, "setting 'unique_key' is '" ~ key ~ "'; its key is '" ~ of_rows ~ "'"),
        (is_history != cdc_lakehouse.is_history(model),
            kind ~ (" cannot write a history without the setting 'scd_type': 2" if is_history
            else ' writes a history here, and the model is none: see row_history')),
        (config.get('scd_type', 1) not in [1, 2],
            "setting 'scd_type' is " ~ config.get('scd_type') ~ '; it is 1, the current rows, or 2, their history'),
        ((config.get('persist_docs') or {}).values() | select | list,
            "setting 'persist_docs' is not supported: Hudi makes a commit of each column's comment"),
        (mode not in ['ignore', 'append_new_columns', 'fail'],
            "setting 'on_schema_change' is '" ~ mode ~ "'; supported: ignore, append_new_columns, fail"),
        (properties['type'] not in ['cow', 'mor'],
            "table property 'type' is '" ~ properties['type'] ~ "'; supported: cow, mor"),
        (partition and (is_history or config.get('materialized') != 'cdc_merge'
            or partition is not string or partition == key),
            "setting 'partition_by' is " ~ partition ~ '; it is the name of one column of a cdc_merge, not its key'),
        (partition and index != 'GLOBAL_SIMPLE',
            "table property 'hoodie.index.type' is '" ~ index ~ "': with 'partition_by' only"
            ~ ' GLOBAL_SIMPLE finds a row whose partition has changed'),
        (index == 'BUCKET' and 'hoodie.bucket.index.num.buckets' not in properties,
            "a bucket index needs the table property 'hoodie.bucket.index.num.buckets', which cannot be changed later"),
        (before != stored_as,
            this ~ ' is stored as: ' ~ before ~ '; the model says: ' ~ stored_as ~ again ~ ' (docs/storage.md)'),
        (fold and fold['is_kept'] and 'cdc_state' not in stored['columns'],
            this ~ ' lacks the column cdc_state' ~ again ~ ' (docs/runbook.md)'),
    ] | selectattr(0) | map('last') | list -%}
    {%- for setting in ['clustered_by', 'buckets', 'incremental_strategy', 'incremental_predicates',
        'predicates', 'merge_update_columns', 'merge_exclude_columns', 'batch_size', 'recompute_by'
    ] if config.get(setting) and (setting != 'recompute_by' or config.get('materialized') != 'atomic_overwrite') -%}
        {%- do errors.append("setting '" ~ setting ~ "' is not supported by " ~ kind) -%}
    {%- endfor -%}
    {%- do exceptions.raise_compiler_error("model '" ~ model.name ~ "': " ~ errors | join('; ')) if errors -%}
{%- endmacro %}
