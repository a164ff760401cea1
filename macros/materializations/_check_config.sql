{#
    Stop at a setting of dbt's that would be ignored without a word, and at a way to store a
    table that cannot work, or is not that of the existing table: Hudi would go on in the old
    way, or write a key twice.
#}
{% macro _check_config(existing, fold) -%}
    {%- set materialization = 'the materialization ' ~ config.get('materialized') -%}
    {%- set schema_changes = ['ignore', 'append_new_columns', 'fail'] -%}
    {%- set properties = config.get('tblproperties') or {} -%}
    {%- set index = properties.get('hoodie.index.type', '') | upper -%}
    {%- set key = config.get('unique_key') -%}
    {%- set is_history = fold is not none and ' as history_id' in fold['query'] -%}
    {%- set expected_key = 'history_id' if is_history else (fold or {}).get('key', key) -%}
    {%- set partition = config.get('partition_by') -%}
    {%- set stored_as = cdc_lakehouse._table_properties()['lakehouse.stored_as'] -%}
    {%- set before = cdc_lakehouse.progress(existing).get('stored_as', 'cow') if existing else stored_as -%}
    {%- set is_outdated = fold and cdc_lakehouse.keeps_rows() and 'cdc_state' not in cdc_lakehouse.stored_columns(this) -%}
    {%- set again = ". Drop the table and build it again: dbt run-operation drop_table --args '{table: "
        ~ this.schema ~ '.' ~ this.identifier ~ "}'" -%}
    {%- set errors = [
        (config.get('file_format') != 'hudi',
            "setting 'file_format' is '" ~ config.get('file_format') ~ "'; " ~ materialization
            ~ ' writes hudi'),
        (key is not string, "setting 'unique_key' is " ~ key ~ '; it is the name of one column'),
        (key is string and key != expected_key,
            "setting 'unique_key' is '" ~ key ~ "'; its key is '" ~ expected_key ~ "'"),
        (is_history != cdc_lakehouse.is_history(model),
            materialization ~ (" cannot write a history without the setting 'scd_type': 2" if is_history
            else ' writes a history here, and the model is none: see row_history')),
        (config.get('scd_type', 1) not in [1, 2],
            "setting 'scd_type' is " ~ config.get('scd_type') ~ '; it is 1, the current rows, or 2, their history'),
        ((config.get('persist_docs') or {}).values() | select | list,
            "setting 'persist_docs' is not supported: Hudi makes a commit of each column's comment"),
        (config.get('on_schema_change', 'ignore') not in schema_changes,
            "setting 'on_schema_change' is '" ~ config.get('on_schema_change') ~ "'; supported: "
            ~ schema_changes | join(', ')),
        (properties.get('type', 'cow') not in ['cow', 'mor'],
            "table property 'type' is '" ~ properties.get('type') ~ "'; supported: cow, mor"),
        (partition and (
            config.get('materialized') != 'cdc_merge' or is_history or partition is not string or partition == key
        ),
            "setting 'partition_by' is " ~ partition ~ '; it is the name of one column, not the key,'
            ~ ' of a model of the materialization cdc_merge'),
        (partition and index not in ['', 'GLOBAL_SIMPLE'],
            "table property 'hoodie.index.type' is '" ~ index ~ "': with 'partition_by' only"
            ~ ' GLOBAL_SIMPLE finds a row whose partition has changed'),
        (index == 'BUCKET' and 'hoodie.bucket.index.num.buckets' not in properties,
            "a bucket index needs the table property 'hoodie.bucket.index.num.buckets', which cannot"
            ~ ' be changed later'),
        (before != stored_as,
            this ~ ' is stored as: ' ~ before ~ '; the model says: ' ~ stored_as ~ again ~ ' (docs/storage.md)'),
        (is_outdated, this ~ ' lacks the column cdc_state' ~ again ~ ' (docs/runbook.md)'),
    ] | selectattr(0) | map('last') | list -%}
    {%- for setting in [
        'clustered_by', 'buckets', 'incremental_strategy', 'incremental_predicates',
        'predicates', 'merge_update_columns', 'merge_exclude_columns', 'batch_size'
    ] if config.get(setting) -%}
        {%- do errors.append("setting '" ~ setting ~ "' is not supported by " ~ materialization) -%}
    {%- endfor -%}
    {%- if errors -%}
        {{ exceptions.raise_compiler_error("model '" ~ model.name ~ "': " ~ errors | join('; ')) }}
    {%- endif -%}
{%- endmacro %}
